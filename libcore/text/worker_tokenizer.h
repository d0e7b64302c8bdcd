#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/text/core_tokenizer.h"
#include "libcore/text/idle_pool.h"

namespace megalith {

/// Encodes texts with the model of its tokenizer. For one thread at a time.
class TextWorker {
 public:
  using TakeIds = Tokenizer::TakeIds;
  virtual ~TextWorker() = default;
  /// Passes the ids of a text to `take`, in order.
  virtual void encode(std::string_view text, const TakeIds& take) = 0;

  /// The same for a text that arrives in parts, which must consist of whole characters. Keeps a reference to
  /// `take`.
  virtual void begin(const TakeIds& take) = 0;
  virtual void add(std::string_view part) = 0;
  virtual void finish() = 0;

  /// Frees memory that an unusually long text took.
  virtual void trim() = 0;
};

/// A model that is encoded by workers, one for each thread. Does not look for added tokens.
class WorkerTokenizer : public CoreTokenizer {
 public:
  int eod() const override;
  void encode(std::string_view text, std::vector<int32_t>& ids) const override;
  void encode_to(std::string_view text, IdBuffer& out) const override;
  void encode_in_parts(std::string_view text, const TakeIds& take) const override;
  std::unique_ptr<Stream> stream(Takers take) const override;
  std::string decode(std::span<const int32_t> ids) const override;
  std::string name() const override { return name_; }

 protected:
  /// `eod`: the id that ends a document; -1: the files do not name one.
  WorkerTokenizer(std::string name, int32_t eod) : name_(std::move(name)), eod_(eod) {}
  virtual std::unique_ptr<TextWorker> make_worker() const = 0;
  virtual std::string_view token(size_t id) const = 0;

 private:
  using Workers = IdlePool<TextWorker>;
  class WorkerStream;
  Workers::Loan worker() const;

  std::string name_;
  int32_t eod_;
  mutable Workers workers_;
};

}  // namespace megalith
