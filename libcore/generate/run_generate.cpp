#include "libcore/generate/run_generate.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/process.h"
#include "libcore/base/text.h"
#include "libcore/convert/sources/model_source.h"
#include "libcore/generate/conversation.h"
#include "libcore/generate/loaded_model.h"
#include "libcore/generate/printer.h"
#include "libcore/generate/prompts.h"
#include "libcore/generate/sources/generation_files.h"
#include "libcore/generate/sources/model_tokenizer.h"
#include "libcore/io/streams/standard_streams.h"
#include "libcore/parallel/exchange.h"
#include "libcore/parallel/together.h"
#include "libcore/text/chat/chat_template.h"

namespace megalith {
namespace {

std::string plural(int64_t n, const char* thing) {
  return concat(format_count(n), " ", thing, n == 1 ? "" : "s");
}

std::string speed(int64_t tokens, double seconds) {
  std::string out = concat(plural(tokens, "token"), " in ", format_fixed(seconds, 3), " s");
  if (tokens > 0 && seconds > 0)
    out += concat(" (", format_fixed(static_cast<double>(tokens) / seconds, 1), " tokens/s)");
  return out;
}

/// The model's tokenizer. In a chat it must not add special tokens, because the chat template writes them.
std::unique_ptr<Tokenizer> tokenizer_of(const ModelSource& source, bool chat) {
  std::unique_ptr<Tokenizer> tokenizer = model_tokenizer(source, !chat);
  tokenizer->expect(0);  // prompts are short, so no large cache is needed
  return tokenizer;
}

/// The ids of a prompt; those of an empty one are the token that ends a text.
std::vector<int32_t> encode(const Tokenizer& tokenizer, const std::string& text, const ModelSource& source) {
  std::vector<int32_t> ids;
  tokenizer.encode(text, ids);
  check_ids(ids, source.config().vocab_size, source.path() + ": its tokenizer");
  if (ids.empty()) ids.push_back(tokenizer.eod());
  return ids;
}

ChatTokens tokens_of(const GenerationFiles& files) {
  return {.bos_token = files.bos_token, .eos_token = files.eos_token};
}

std::vector<Prompt> encode_prompts(const GenerateConfig& config, const ModelSource& source,
                                   const Tokenizer& tokenizer, const GenerationFiles& files) {
  std::vector<Prompt> prompts;
  if (config.prompt.chat) {
    const Json messages = Json::parse(read_text(*config.prompt.chat), *config.prompt.chat);
    const ChatTemplate chat(files.chat_template, files.template_file);
    const std::string text = render_chat(chat, messages, tokens_of(files));
    prompts.push_back({text, encode(tokenizer, text, source)});
  } else {
    for (const std::string& text : read_prompts(config.prompt))
      prompts.push_back({text, encode(tokenizer, text, source)});
  }
  return prompts;
}

std::vector<int32_t> stop_tokens(const EndOptions& options, const GenerationFiles& files) {
  if (options.ignore_eos) return {};
  return options.eos ? std::vector<int32_t>{*options.eos} : files.end;
}

void report(const GenerationTotals& totals) {
  log("prompt: ", speed(totals.prompt_tokens, totals.prompt_seconds));
  log("generated ", plural(totals.new_tokens, "token"),
      "; after the first: ", speed(totals.later_tokens, totals.seconds), "; memory ",
      format_bytes(static_cast<double>(peak_memory())), " at most");
}

}  // namespace

void PromptOptions::validate(Problems& problems) const {
  const int given = int{!prompts.empty()} + int{!prompts_file.empty()} + int{chat.has_value()};
  if (given > 1)
    problems.add(Opt{"prompt"}, ", ", Opt{"prompts-file"}, " and ", Opt{"chat"},
                 " exclude each other; give one of them");
  if (conversation() && sequences > 1)
    problems.add(Opt{"num-return-sequences"}, ' ', sequences,
                 ": a conversation has one answer to a question; leave it out, or give ", Opt{"chat"},
                 " a file");
}

void EndOptions::validate(Problems& problems) const {
  if (std::find(stop.begin(), stop.end(), "") != stop.end())
    problems.add(Opt{"stop"},
                 " is an empty text, which ends everything at once; give at least one character");
}

namespace {

void show_loading(const GenerateConfig& config) {
  show_status(concat("loading ", config.model.model, " ..."));
}

/// What a run reads of its model, apart from the weights.
struct ModelTexts {
  explicit ModelTexts(const GenerateConfig& config)
      : source(config.model.model),
        tokenizer(tokenizer_of(source, config.prompt.chat.has_value())),
        files(generation_files(source, *tokenizer)) {}

  const ModelSource source;
  const std::unique_ptr<Tokenizer> tokenizer;
  const GenerationFiles files;
};

Generator generator_of(const GenerateConfig& config, LoadedModel& model, const GenerateRanks* ranks) {
  return {model.stage(),
          model.stream(),
          {.batch = std::max(config.run.batch, config.beams.beams),
           .bf16_cache = config.run.cache == CacheType::kBf16,
           .prefix = model.prefix(),
           .ranks = ranks && ranks->tensor.size() > 1 ? &ranks->tensor : nullptr}};
}

Generator::Job job_of(const GenerateConfig& config, const GenerationFiles& files) {
  return {.prompts = {},
          .continuations = config.prompt.sequences,
          .sampling = config.sampling,
          .beams = config.beams,
          .stop_tokens = stop_tokens(config.end, files),
          .max_length = config.end.max_length};
}

/// The number of tokens of the longest text that continues one of the prompts. In a conversation, whose
/// prompts come later, that is --max-length; 0: not known.
int64_t longest_text(const GenerateConfig& config, std::span<const Prompt> prompts) {
  int64_t length = 0;
  for (const Prompt& prompt : prompts)
    length = std::max(length, static_cast<int64_t>(prompt.ids.size()) + config.sampling.max_new_tokens);
  const int64_t most = config.end.max_length;
  if (prompts.empty()) return most;
  return most > 0 ? std::min(length, most) : length;
}

LoadOptions load_options(const GenerateConfig& config, std::span<const Prompt> prompts) {
  return {.adapter = config.model.adapter,
          .device = config.run.device,
          .int8 = config.run.int8,
          .length = longest_text(config, prompts)};
}

LoadedModel load(const GenerateConfig& config, const ModelSource& source, std::span<const Prompt> prompts) {
  show_loading(config);
  return {source, load_options(config, prompts)};
}

Printer::Style style_of(const GenerateConfig& config) {
  return {.json = config.output.json,
          .echo = config.output.echo && !config.prompt.chat,
          .continuations = static_cast<size_t>(config.prompt.sequences),
          .stop = config.end.stop};
}

void continue_prompts(const GenerateConfig& config, const ModelTexts& texts) {
  const std::vector<Prompt> prompts = encode_prompts(config, texts.source, *texts.tokenizer, texts.files);
  LoadedModel model = load(config, texts.source, prompts);
  Printer printer(*texts.tokenizer, prompts, style_of(config));
  std::vector<std::vector<int32_t>> ids;
  for (const Prompt& prompt : prompts) ids.push_back(prompt.ids);
  Generator generator = generator_of(config, model, nullptr);
  Generator::Job job = job_of(config, texts.files);
  job.prompts = ids;
  job.on_token = [&](size_t sequence, int32_t token) { return printer.token(sequence, token); };
  job.on_end = [&](size_t sequence, const Generated& made) { printer.end(sequence, made); };
  generator.run(job);
  report(generator.totals());
}

/// The sum of what the ranks did; times are those of the slowest one.
GenerationTotals joined(const std::vector<GenerationTotals>& all) {
  GenerationTotals sum;
  for (const GenerationTotals& one : all) {
    sum.prompt_tokens += one.prompt_tokens;
    sum.new_tokens += one.new_tokens;
    sum.later_tokens += one.later_tokens;
    sum.prompt_seconds = std::max(sum.prompt_seconds, one.prompt_seconds);
    sum.seconds = std::max(sum.seconds, one.seconds);
  }
  return sum;
}

/// Prompts that a group continues before ranks exchange their texts: so many that it is seldom without enough
/// sequences for its batch, and so few that a run that fails loses little.
size_t prompts_of_a_round(const GenerateConfig& config) {
  constexpr int kAtLeast = 64, kBatches = 8;
  return static_cast<size_t>(std::max(kAtLeast, kBatches * config.run.batch));
}

/// One rank's part of a run of several.
class RankedGeneration {
 public:
  RankedGeneration(const GenerateConfig& config, const ModelTexts& texts, const GenerateRanks& ranks)
      : config_(config), texts_(texts), ranks_(ranks) {}

  /// Returns false if nobody reads the texts any more.
  bool run() {
    together([&](const auto&) {
      if (prints()) prompts_ = encode_prompts(config_, texts_.source, *texts_.tokenizer, texts_.files);
    });
    prompts_ = rank0_value(ranks_.world, prompts_);
    LoadOptions part = load_options(config_, prompts_);
    part.backend = &ranks_.backend;
    part.split = {.rank = ranks_.tensor.rank(), .size = ranks_.tensor.size()};
    std::optional<LoadedModel> model;
    together([&](const auto&) { model.emplace(texts_.source, part); });
    const Drain drain(model->stream());  // when it fails, ends what its device waits for
    generate(*model);
    return !unread_;
  }

 private:
  void together(const TogetherWork& work) const {
    do_together(ranks_.world, ranks_.parallel.peer_timeout(), work);
  }
  bool prints() const { return ranks_.world.rank() == 0; }
  /// Prompts one after the other.
  struct Prompts {
    size_t first, end;
  };
  /// Those of them that a group continues.
  Prompts share_of(const Prompts& all, int group) const {
    const size_t count = all.end - all.first, groups = static_cast<size_t>(ranks_.parallel.data);
    const auto begin = [&](int of) { return all.first + count * static_cast<size_t>(of) / groups; };
    return {begin(group), begin(group + 1)};
  }
  std::vector<std::vector<int32_t>> ids_of(const Prompts& some) const {
    std::vector<std::vector<int32_t>> ids;
    for (size_t i = some.first; i < some.end; ++i) ids.push_back(prompts_[i].ids);
    return ids;
  }
  size_t continuations() const { return static_cast<size_t>(config_.prompt.sequences); }

  void generate(LoadedModel& model) {
    Generator generator = generator_of(config_, model, &ranks_);
    Printer printer(*texts_.tokenizer, prompts_, style_of(config_));
    Generator::Job job = job_of(config_, texts_.files);
    const std::vector<std::vector<int32_t>> all = ids_of({0, prompts_.size()});
    job.prompts = all;
    generator.check(job);  // before the first round, so that no work is wasted
    const auto groups = static_cast<size_t>(ranks_.parallel.data);
    if (prompts_.size() < groups)
      warn(groups - prompts_.size(), " of ", groups, " data-parallel ranks have no prompt: there are ",
           prompts_.size(), "; start fewer ranks, or let more share the matrices");
    const size_t round = prompts_of_a_round(config_) * groups;
    for (size_t first = 0; first < prompts_.size() && !unread_; first += round)
      generate({first, std::min(first + round, prompts_.size())}, generator, printer);
    const auto totals =
        exchange_values(ranks_.world, ranks_.tensor.rank() == 0 ? generator.totals() : GenerationTotals());
    report(joined(totals));
  }

  /// One round: each group continues its share of these prompts, and the first rank prints the texts.
  void generate(const Prompts& round, Generator& generator, Printer& printer) {
    const Prompts own = share_of(round, ranks_.group());
    const std::vector<std::vector<int32_t>> ids = ids_of(own);
    Generator::Job job = job_of(config_, texts_.files);
    job.prompts = ids;
    job.first_draw = static_cast<int64_t>(own.first * continuations());
    std::vector<Generated> made;
    together([&](const auto& check) {
      prints() ? print_each(job, own.first, printer, check) : stop_each(job, own.first, check);
      made = generator.run(job);
    });
    const std::vector<std::vector<Generated>> of_ranks = exchange_values(ranks_.world, made);
    together([&](const auto&) {
      if (prints()) print_others(of_ranks, round.first, printer);
    });
    unread_ = rank0_value(ranks_.world, unread_);
  }

  void print_each(Generator::Job& job, size_t first, Printer& printer, const std::function<void()>& check) {
    const size_t before = first * continuations();
    job.on_token = [this, &printer, &check, before](size_t sequence, int32_t token) {
      check();
      return print([&] { return printer.token(before + sequence, token); });
    };
    job.on_end = [this, &printer, before](size_t sequence, const Generated& text) {
      end(printer, before + sequence, text);
    };
  }
  void end(Printer& printer, size_t sequence, const Generated& text) {
    print([&] {
      printer.end(sequence, text);
      return true;
    });
  }
  /// Once nobody reads the texts, each ends at its next token: then all ranks end as if all were written.
  bool print(const std::function<bool()>& work) {
    if (unread_) return false;
    try {
      return work();
    } catch (const ReaderGone&) {
      unread_ = true;
      return false;
    }
  }

  /// Ends the texts of a group that does not print where --stop does.
  void stop_each(Generator::Job& job, size_t first, const std::function<void()>& check) {
    job.on_token = [this, &check, first](size_t sequence, int32_t token) {
      check();
      if (config_.end.stop.empty()) return true;
      const Prompt& prompt = prompts_[first + sequence / continuations()];
      const auto text = streams_.try_emplace(sequence, *texts_.tokenizer, prompt.ids, config_.end.stop).first;
      text->second.push(token);
      return !text->second.stopped();
    };
    job.on_end = [this](size_t sequence, const Generated&) { streams_.erase(sequence); };
  }

  /// Prints the texts of all groups but the first, which has continued the prompts from `first` on.
  void print_others(const std::vector<std::vector<Generated>>& of_ranks, size_t first, Printer& printer) {
    size_t sequence = first * continuations() + of_ranks.front().size();
    for (size_t rank = 1; rank < of_ranks.size(); ++rank)
      for (const Generated& text : of_ranks[rank]) {
        for (const int32_t token : text.tokens) print([&] { return printer.token(sequence, token); });
        end(printer, sequence++, text);
      }
  }

  const GenerateConfig& config_;
  const ModelTexts& texts_;
  const GenerateRanks& ranks_;
  std::vector<Prompt> prompts_;
  std::map<size_t, TextStream> streams_;  // of texts that have begun
  bool unread_ = false;                   // stdout's reader has gone
};

void require_divisible(const ModelSource& source, const ParallelConfig& parallel) {
  Problems problems;
  parallel.validate(source.config(), problems);
  problems.throw_if_any();
}

void hold_conversation(const GenerateConfig& config, const ModelTexts& texts) {
  const ChatTemplate chat(texts.files.chat_template, texts.files.template_file);
  LoadedModel model = load(config, texts.source, {});
  Generator generator = generator_of(config, model, nullptr);
  ChatHistory history(chat, tokens_of(texts.files),
                      [&](const std::string& text) { return encode(*texts.tokenizer, text, texts.source); });
  converse({.generator = generator,
            .tokenizer = *texts.tokenizer,
            .history = history,
            .answer = job_of(config, texts.files),
            .style = {.json = config.output.json, .echo = false, .stop = config.end.stop}});
  report(generator.totals());
}

}  // namespace

void run_generate(const GenerateConfig& config) {
  set_cpu_threads(config.run.threads);
  show_loading(config);
  const ModelTexts texts(config);
  if (config.prompt.conversation())
    hold_conversation(config, texts);
  else
    continue_prompts(config, texts);
}

bool run_generate(const GenerateConfig& config, const GenerateRanks& ranks) {
  show_loading(config);
  const ModelTexts texts(config);
  require_divisible(texts.source, ranks.parallel);
  return RankedGeneration(config, texts, ranks).run();
}

}  // namespace megalith
