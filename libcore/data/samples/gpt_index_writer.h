#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "libcore/base/machine/huge_pages.h"
#include "libcore/data/samples/gpt_index.h"

namespace megalith {

/// Writes an index with only one of its arrays in memory. `out` gets each array in parts, in this order:
/// document_index, sample_index and shuffle_index, as Megatron names them. Of each it gets the calls
/// begin<T>(name, rows, columns), add(std::span<const T>) any number of times, and end(). T is int32_t,
/// uint32_t or int64_t (see GptIndex); a sample_index has two columns, the others have one.
template <class Out>
class GptIndexWriter {
 public:
  GptIndexWriter(GptIndexMaker& maker, Out& out) : maker_(maker), plan_(maker.plan()), out_(out) {}

  /// Throws what `out` and GptIndexMaker throw.
  void write() {
    write_documents_and_samples();
    if (plan_.wide_shuffle)
      write_shuffle<int64_t>();
    else
      write_shuffle<uint32_t>();
  }

 private:
  void write_documents_and_samples() {
    const HugePages room(static_cast<size_t>(plan_.documents) * sizeof(int32_t),
                         HugePages::Backing::kReserved);
    const std::span<int32_t> documents = room.as<int32_t>();
    maker_.documents(documents);
    add_whole<int32_t>("document_index", documents);
    if (plan_.wide_samples)
      write_samples<int64_t>(documents);
    else
      write_samples<int32_t>(documents);
  }

  template <class T>
  void write_samples(std::span<const int32_t> documents) {
    constexpr int64_t kRows = int64_t{1} << 16;  // of a part
    const int64_t rows = plan_.pieces + 1;
    std::vector<T> part;
    out_.template begin<T>("sample_index", rows, 2);
    for (int64_t done = 0; done < rows; done += kRows) {
      part.resize(2 * static_cast<size_t>(std::min(kRows, rows - done)));
      maker_.samples(documents, std::span(part));
      out_.add(std::span<const T>(part));
    }
    out_.end();
  }

  template <class T>
  void write_shuffle() {
    const HugePages room(static_cast<size_t>(plan_.pieces) * sizeof(T), HugePages::Backing::kReserved);
    maker_.shuffle(room.as<T>());
    add_whole<T>("shuffle_index", room.as<T>());
  }

  template <class T>
  void add_whole(const char* name, std::span<const T> array) {
    out_.template begin<T>(name, static_cast<int64_t>(array.size()), 1);
    out_.add(array);
    out_.end();
  }

  GptIndexMaker& maker_;
  const GptIndexPlan& plan_;
  Out& out_;
};

}  // namespace megalith
