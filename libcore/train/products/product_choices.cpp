#include "libcore/train/products/product_choices.h"

#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/hash/sha256.h"
#include "libcore/hash/xxh64.h"
#include "libcore/io/cache/build_cache.h"
#include "libcore/json/json_names.h"
#include "libcore/ops/backend/library_version.h"
#include "libcore/ops/backend/product_plugin.h"
#include "libcore/parallel/exchange.h"
#include "libcore/parallel/together.h"

namespace megalith {
namespace {

/// As in text_of() a kind.
const char* text_of(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::kNone:
      return "";
    case Epilogue::kGelu:
      return " gelu";
    case Epilogue::kGeluGrad:
      return " gelu_grad";
    case Epilogue::kBiasGrad:
      return " bias_grad";
  }
  return "";
}

/// "512x2304x768 bf16 to fp32 nt add": m, n, k, types, whether a and b are transposed, what is fused.
std::string text_of(const ProductKind& kind) {
  const auto letter = [](bool transposed) { return transposed ? 't' : 'n'; };
  return concat(kind.m, 'x', kind.n, 'x', kind.k, ' ', name_of(kind.in), " to ", name_of(kind.out), ' ',
                letter(kind.trans_a), letter(kind.trans_b), kind.bias ? " bias" : "",
                kind.accumulate ? " add" : "", text_of(kind.epilogue));
}

std::string text_of(const ProductAlgorithm& algorithm) {
  std::string text;
  for (const uint64_t word : algorithm) text += hex64(word);
  return text;
}

/// The algorithm that text_of() wrote; nothing for any other text.
std::optional<ProductAlgorithm> algorithm_of(std::string_view text) {
  constexpr size_t kDigits = 16;  // of a word
  ProductAlgorithm algorithm{};
  if (text.size() != kDigits * algorithm.size()) return std::nullopt;
  for (size_t i = 0; i < algorithm.size(); ++i) {
    const auto word = parse_hex64(text.substr(i * kDigits, kDigits));
    if (!word) return std::nullopt;
    algorithm[i] = *word;
  }
  return algorithm;
}

std::string text_of(const ProductLibrary& library) {
  return concat(printable(library.gpu), " with cuBLASLt ", library_version(library.cublas));
}

/// The file in which the choice for a product is kept.
CachedFile file_of(const ProductLibrary& library, const ProductKind& kind) {
  return {"product", 1, sha256_hex(concat(library.gpu, '\n', library.cublas, '\n', text_of(kind)))};
}

/// What a checkpoint says of its run's products.
struct SavedProducts {
  ProductLibrary library;
  std::map<std::string, ProductAlgorithm> algorithms;  // by text_of() a kind
};

std::optional<SavedProducts> saved_products(const ProductRun& run) {
  const Json* const saved = run.saved ? run.saved->find(kProductAlgorithms) : nullptr;
  if (!saved) return std::nullopt;
  const JsonNames names(*run.saved, run.place);
  SavedProducts products{
      .library = {.gpu = (*saved)["gpu"].as_string(), .cublas = (*saved)["cublaslt"].as_int()},
      .algorithms = {}};
  for (const auto& [kind, text] : (*saved)["algorithms"].as_object()) {
    const auto algorithm = algorithm_of(text.as_string());
    if (!algorithm)
      fail(ErrorKind::kData, JsonNames::of(text), " is ", quote_name(text.as_string()),
           ", wanted an algorithm of cuBLASLt, 128 hexadecimal digits; take another checkpoint");
    products.algorithms[kind] = *algorithm;
  }
  return products;
}

/// Rank 0's choice.
class Chooser {
 public:
  Chooser(const ProductRun& run, Backend& backend, const std::function<void()>& check)
      : run_(run), backend_(backend), check_(check), library_(product_library(backend)) {
    saved_ = saved_products(run);
    if (saved_ && saved_->library == library_) usable_ = &saved_->algorithms;
  }

  std::vector<ChosenProduct> choose() {
    std::vector<ProductKind> unknown;
    for (const ProductKind& kind : run_.kinds.products()) {
      check_();
      if (!take_known(kind)) unknown.push_back(kind);
    }
    if (!unknown.empty()) time(unknown);
    const std::string cache = cache_folder();
    log(" > algorithms of ", chosen_.size(), " products on ", text_of(library_), ": ", from_checkpoint_,
        " from the checkpoint, ", from_files_, " from ", cache.empty() ? "files (no HOME)" : printable(cache),
        ", ", timed_, " timed");
    if (run_.saved) warn_of_other_bits();
    return std::move(chosen_);
  }

 private:
  /// Returns false if cuBLASLt refuses the algorithm.
  bool use(const ProductKind& kind, const ProductAlgorithm& algorithm) {
    const ChosenProduct product{.kind = kind, .algorithm = algorithm};
    if (!use_product(backend_, product)) return false;
    chosen_.push_back(product);
    return true;
  }

  bool take_known(const ProductKind& kind) {
    if (usable_) {
      const auto saved = usable_->find(text_of(kind));
      if (saved != usable_->end() && use(kind, saved->second)) {
        ++from_checkpoint_;
        return true;
      }
    }
    const auto contents = file_of(library_, kind).load();
    const auto kept = contents ? algorithm_of(contents->text()) : std::nullopt;
    if (!kept || !use(kind, *kept)) return false;
    ++from_files_;
    return true;
  }

  void time(const std::vector<ProductKind>& kinds) {
    const auto fastest = fastest_products(backend_, kinds);
    for (size_t i = 0; i < kinds.size(); ++i)
      if (fastest[i] && use(kinds[i], *fastest[i])) {
        ++timed_;
        file_of(library_, kinds[i]).store(text_of(*fastest[i]));
      }
  }

  void warn_of_other_bits() const {
    if (usable_ && from_files_ + timed_ == 0) return;
    const std::string other = usable_  ? "of another layout, or of other sizes"
                              : saved_ ? "on " + text_of(saved_->library)
                                       : "without a choice of their algorithms";
    warn(run_.path, ": its products were computed ", other, ", so bits may differ from here on");
  }

  const ProductRun& run_;
  Backend& backend_;
  const std::function<void()>& check_;
  ProductLibrary library_;
  std::optional<SavedProducts> saved_;
  const std::map<std::string, ProductAlgorithm>* usable_ = nullptr;
  std::vector<ChosenProduct> chosen_;
  int from_checkpoint_ = 0, from_files_ = 0, timed_ = 0;
};

/// What rank 0 tells the others.
struct Choice {
  ProductLibrary library;
  std::vector<ChosenProduct> products = {};

  template <class V>
  void members(V&& visit) {
    visit(library.gpu, library.cublas, products);
  }
};

/// As saved_products() reads it.
Json json_of(const Choice& choice) {
  Json json = Json::object();
  json.set("gpu", choice.library.gpu);
  json.set("cublaslt", choice.library.cublas);
  Json& algorithms = json.set("algorithms", Json::object());
  for (const auto& [kind, algorithm] : choice.products) algorithms.set(text_of(kind), text_of(algorithm));
  return json;
}

}  // namespace

Json choose_products(const ProductRun& run, Backend& backend) {
  if (backend.name() != std::string_view("cuda")) {
    if (const auto saved = saved_products(run))
      warn(run.path, ": its products were computed on ", text_of(saved->library),
           ", so bits may differ from here on");
    return {};
  }
  const ProductLibrary mine = product_library(backend);
  Choice choice{.library = mine};
  do_together(run.world, run.peer_timeout, [&](const std::function<void()>& check) {
    if (run.world.rank() == 0) choice.products = Chooser(run, backend, check).choose();
  });
  choice = rank0_value(run.world, choice);
  // A rank with another GPU or cuBLASLt, or whose device refuses one, keeps to what cuBLASLt suggests there.
  if (run.world.rank() != 0 && choice.library == mine)
    for (const ChosenProduct& product : choice.products) use_product(backend, product);
  return json_of(choice);
}

}  // namespace megalith
