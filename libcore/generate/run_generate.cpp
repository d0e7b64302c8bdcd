#include "libcore/generate/run_generate.h"

#include <algorithm>
#include <memory>
#include <string>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/process.h"
#include "libcore/base/text.h"
#include "libcore/convert/sources/model_source.h"
#include "libcore/generate/conversation.h"
#include "libcore/generate/generation_files.h"
#include "libcore/generate/loaded_model.h"
#include "libcore/generate/model_tokenizer.h"
#include "libcore/generate/printer.h"
#include "libcore/generate/prompts.h"
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

void report(const Generator& generator) {
  const GenerationTotals& totals = generator.totals();
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

/// What a run has read of its model, apart from the weights.
struct ModelTexts {
  const ModelSource& source;
  const Tokenizer& tokenizer;
  const GenerationFiles& files;
};

Generator generator_of(const GenerateConfig& config, LoadedModel& model) {
  return {model.stage(),
          model.stream(),
          {.batch = std::max(config.run.batch, config.beams.beams),
           .bf16_cache = config.run.cache == CacheType::kBf16,
           .prefix = model.prefix()}};
}

Generator::Job job_of(const GenerateConfig& config, const GenerationFiles& files) {
  return {.prompts = {},
          .continuations = config.prompt.sequences,
          .sampling = config.sampling,
          .beams = config.beams,
          .stop_tokens = stop_tokens(config.end, files),
          .max_length = config.end.max_length};
}

LoadedModel load(const GenerateConfig& config, const ModelSource& source) {
  show_status(concat("loading ", config.model.model, " ..."));
  return {source, {.adapter = config.model.adapter, .device = config.run.device, .int8 = config.run.int8}};
}

void continue_prompts(const GenerateConfig& config, const ModelTexts& texts) {
  const std::vector<Prompt> prompts = encode_prompts(config, texts.source, texts.tokenizer, texts.files);
  LoadedModel model = load(config, texts.source);
  Printer printer(texts.tokenizer, prompts,
                  {.json = config.output.json,
                   .echo = config.output.echo && !config.prompt.chat,
                   .continuations = static_cast<size_t>(config.prompt.sequences),
                   .stop = config.end.stop});
  std::vector<std::vector<int32_t>> ids;
  for (const Prompt& prompt : prompts) ids.push_back(prompt.ids);
  Generator generator = generator_of(config, model);
  Generator::Job job = job_of(config, texts.files);
  job.prompts = ids;
  job.on_token = [&](size_t sequence, int32_t token) { return printer.token(sequence, token); };
  job.on_end = [&](size_t sequence, const Generated& made) { printer.end(sequence, made); };
  generator.run(job);
  report(generator);
}

void hold_conversation(const GenerateConfig& config, const ModelTexts& texts) {
  const ChatTemplate chat(texts.files.chat_template, texts.files.template_file);
  LoadedModel model = load(config, texts.source);
  Generator generator = generator_of(config, model);
  ChatHistory history(chat, tokens_of(texts.files),
                      [&](const std::string& text) { return encode(texts.tokenizer, text, texts.source); });
  converse({.generator = generator,
            .tokenizer = texts.tokenizer,
            .history = history,
            .answer = job_of(config, texts.files),
            .style = {.json = config.output.json, .echo = false, .stop = config.end.stop}});
  report(generator);
}

}  // namespace

void run_generate(const GenerateConfig& config) {
  set_cpu_threads(config.run.threads);
  show_status(concat("loading ", config.model.model, " ..."));
  const ModelSource source(config.model.model);
  const std::unique_ptr<Tokenizer> tokenizer = tokenizer_of(source, config.prompt.chat.has_value());
  const GenerationFiles files = generation_files(source, *tokenizer);
  const ModelTexts texts{source, *tokenizer, files};
  if (config.prompt.conversation())
    hold_conversation(config, texts);
  else
    continue_prompts(config, texts);
}

}  // namespace megalith
