#include "libcore/train/products/attention_choice.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libcore/base/log.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/json/json_names.h"
#include "libcore/ops/backend/attention_plugin.h"
#include "libcore/ops/backend/library_version.h"
#include "libcore/parallel/exchange.h"
#include "libcore/parallel/together.h"

namespace megalith {
namespace {

/// "1024x4x12x1x64 bf16": rows, batch, groups, query heads of a group, columns of a head.
std::string text_of(const AttentionKind& kind) {
  return concat(kind.rows, 'x', kind.batch, 'x', kind.groups, 'x', kind.r, 'x', kind.head, ' ',
                name_of(kind.dtype));
}

/// What a checkpoint says of its run's attention.
struct SavedAttention {
  AttentionLibrary library;
  std::map<std::string, bool> by_cudnn;  // by text_of() a kind
};

std::optional<SavedAttention> saved_attention(const ProductRun& run) {
  const Json* const products = run.saved ? run.saved->find(kProductAlgorithms) : nullptr;
  const Json* const saved = products ? products->find(kAttentionChoice) : nullptr;
  if (!saved) return std::nullopt;
  const JsonNames names(*run.saved, run.place);
  SavedAttention attention{
      .library = {.gpu = (*saved)["gpu"].as_string(), .cudnn = (*saved)["cudnn"].as_int()}, .by_cudnn = {}};
  for (const auto& [kind, chosen] : (*saved)["kinds"].as_object())
    attention.by_cudnn[kind] = chosen.as_bool();
  return attention;
}

/// What rank 0 tells the others: the kinds that cuDNN computes, and those that our kernels do.
struct Choice {
  AttentionLibrary library;
  std::vector<AttentionKind> chosen = {}, left = {};

  template <class V>
  void members(V&& visit) {
    visit(library.gpu, library.cudnn, chosen, left);
  }
};

/// Rank 0's choice.
class Chooser {
 public:
  Chooser(const ProductRun& run, Backend& backend, const std::function<void()>& check)
      : run_(run), backend_(backend), check_(check), library_(attention_library(backend, &why_not_)) {
    saved_ = saved_attention(run);
    if (saved_ && saved_->library == library_) usable_ = &saved_->by_cudnn;
  }

  Choice choose() {
    Choice choice{.library = library_};
    for (const AttentionKind& kind : run_.kinds.attention()) {
      check_();
      (library_.cudnn > 0 && wanted(kind) && use(kind) ? choice.chosen : choice.left).push_back(kind);
    }
    tell(choice);
    return choice;
  }

 private:
  /// Whether the checkpoint does not keep it from cuDNN.
  bool wanted(const AttentionKind& kind) {
    if (!usable_) return true;
    const auto saved = usable_->find(text_of(kind));
    if (saved == usable_->end()) {
      differs_ = true;
      return true;
    }
    if (!saved->second) why_not_ = "as in the checkpoint";
    return saved->second;
  }
  bool use(const AttentionKind& kind) {
    std::string trouble = trouble_with_cudnn(backend_, kind);
    if (trouble.empty()) trouble = use_cudnn(backend_, kind);
    if (trouble.empty()) return true;
    why_not_ = trouble;
    differs_ = differs_ || (usable_ && usable_->count(text_of(kind)) > 0);
    return false;
  }
  void tell(const Choice& choice) const {
    if (choice.chosen.empty() && choice.left.empty()) return;
    if (!choice.chosen.empty())
      log(" > attention of ", choice.chosen.size(), choice.chosen.size() == 1 ? " shape" : " shapes",
          " by cuDNN ", library_version(library_.cudnn));
    if (!choice.left.empty())
      log(" > attention of ", choice.left.size(), choice.left.size() == 1 ? " shape" : " shapes",
          " by our kernels, not by cuDNN: ", printable(why_not_));
    const bool cudnn_before = saved_ && std::any_of(saved_->by_cudnn.begin(), saved_->by_cudnn.end(),
                                                    [](const auto& kind) { return kind.second; });
    if (run_.saved && (differs_ || (!usable_ && (cudnn_before || !choice.chosen.empty()))))
      warn(run_.path, ": its attention was computed ",
           cudnn_before ? concat("by cuDNN ", library_version(saved_->library.cudnn), " on ",
                                 printable(saved_->library.gpu))
                        : std::string("by our kernels"),
           ", so bits may differ from here on");
  }

  const ProductRun& run_;
  Backend& backend_;
  const std::function<void()>& check_;
  std::string why_not_;  // declared before library_, which sets it
  AttentionLibrary library_;
  std::optional<SavedAttention> saved_;
  const std::map<std::string, bool>* usable_ = nullptr;
  bool differs_ = false;
};

/// Follows rank 0's choice. Returns why this rank's kernels compute what cuDNN computes there; empty if they
/// do not.
std::string follow(const Choice& choice, Backend& backend) {
  if (choice.chosen.empty()) return {};
  std::string trouble;
  const AttentionLibrary library = attention_library(backend, &trouble);
  if (library.cudnn == 0) return trouble;
  if (library != choice.library)
    return concat("its GPU is ", library.gpu, ", with cuDNN ", library_version(library.cudnn));
  for (const AttentionKind& kind : choice.chosen)
    if (std::string why = use_cudnn(backend, kind); !why.empty()) trouble = std::move(why);
  return trouble;
}

Json json_of(const Choice& choice) {
  Json json = Json::object();
  json.set("gpu", choice.library.gpu);
  json.set("cudnn", choice.library.cudnn);
  Json& kinds = json.set("kinds", Json::object());
  for (const AttentionKind& kind : choice.chosen) kinds.set(text_of(kind), true);
  for (const AttentionKind& kind : choice.left) kinds.set(text_of(kind), false);
  return json;
}

}  // namespace

Json choose_attention(const ProductRun& run, Backend& backend) {
  if (backend.name() != std::string_view("cuda")) return {};
  Choice choice;
  do_together(run.world, run.peer_timeout, [&](const std::function<void()>& check) {
    if (run.world.rank() == 0) choice = Chooser(run, backend, check).choose();
  });
  choice = rank0_value(run.world, choice);
  const std::string mine = run.world.rank() == 0 ? std::string() : follow(choice, backend);
  const std::vector<std::string> troubles = exchange_values(run.world, mine);
  for (size_t rank = 1; rank < troubles.size(); ++rank)
    if (!troubles[rank].empty())
      warn("rank ", rank, " computes attention by our kernels, not by cuDNN as the first rank does: ",
           printable(troubles[rank]));
  return json_of(choice);
}

}  // namespace megalith
