#include "libcore/text/worker_tokenizer.h"

#include "libcore/base/error.h"
#include "libcore/base/utf8.h"

namespace megalith {

WorkerTokenizer::Workers::Loan WorkerTokenizer::worker() const {
  return workers_.borrow([&] { return make_worker(); });
}

int WorkerTokenizer::eod() const {
  if (eod_ < 0) fail_without_end(name_);
  return eod_;
}

void WorkerTokenizer::encode(std::string_view text, std::vector<int32_t>& ids) const {
  encode_in_parts(text,
                  [&](std::span<const int32_t> more) { ids.insert(ids.end(), more.begin(), more.end()); });
}

void WorkerTokenizer::encode_to(std::string_view text, IdBuffer& out) const {
  encode_in_parts(text, [&](std::span<const int32_t> more) { out.append(more); });
}

void WorkerTokenizer::encode_in_parts(std::string_view text, const TakeIds& take) const {
  const Workers::Loan loan = worker();
  loan->encode(text, take);
  loan->trim();
}

class WorkerTokenizer::WorkerStream : public CoreTokenizer::Stream {
 public:
  WorkerStream(Workers::Loan worker, TakeIds take) : worker_(std::move(worker)), take_(std::move(take)) {
    worker_->begin(take_);
  }
  void add(std::string_view part) override { worker_->add(part); }
  void finish() override {
    worker_->finish();
    worker_->trim();
  }

 private:
  Workers::Loan worker_;
  TakeIds take_;
};

std::unique_ptr<CoreTokenizer::Stream> WorkerTokenizer::stream(Takers take) const {
  return std::make_unique<WorkerStream>(worker(), std::move(take.ids));
}

std::string WorkerTokenizer::decode(std::span<const int32_t> ids) const {
  std::string text;
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocab_size()) refuse_token_id(id, static_cast<size_t>(vocab_size()));
    text += token(static_cast<size_t>(id));
  }
  return replace_invalid_utf8(text);
}

}  // namespace megalith
