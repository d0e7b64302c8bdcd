#pragma once

#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/json/json.h"
#include "libcore/text/formats/make_tokenizer.h"
#include "tests/support/files.h"

namespace megalith::test {

/// A file of the tokenizer that Hugging Face trained (tools/golden/tokenizer.py).
inline std::string trained(std::string_view name) {
  return test_data(concat("text/goldens/trained/", name));
}

inline std::unique_ptr<Tokenizer> trained_gpt2() {
  return make_tokenizer({.type = "GPT2BPETokenizer",
                         .vocab = trained("vocab.json"),
                         .merges = trained("merges.txt"),
                         .model = {}});
}

inline std::vector<int32_t> encode(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> ids;
  tokenizer.encode(text, ids);
  return ids;
}

inline std::vector<int32_t> ids_of(const Json& list) {
  std::vector<int32_t> ids;
  for (const Json& id : list.as_array()) ids.push_back(static_cast<int32_t>(id.as_int()));
  return ids;
}

/// Expects that a list of texts gives `ids` when they are encoded together, each with its end, and that these
/// ids decode to `decoded`, each with a line end.
struct TextsTogether {
  std::vector<std::string> texts;
  std::vector<int32_t> ids;
  std::string decoded;

  void add(const std::string& text, const std::vector<int32_t>& of_text, const std::string& back) {
    texts.push_back(text);
    ids.insert(ids.end(), of_text.begin(), of_text.end());
    ids.push_back(Tokenizer::kTextEnd);
    decoded += back + "\n";
  }
  void expect(const Tokenizer& tokenizer, const std::string& name) const {
    IdBuffer found(sizeof(int32_t));
    tokenizer.encode_all(std::vector<std::string_view>(texts.begin(), texts.end()), found);
    EXPECT_EQ(found.ids(), ids) << name;
    ByteBuffer text;
    tokenizer.decode_all(ids, text);
    EXPECT_EQ(std::string_view(text.data(), text.size()), decoded) << name;
  }
};

/// 2 MB of these texts in random order, each repeated a few times, and one in 400 up to a length of
/// 1.5 MB.
inline std::string text_with_giants(const std::vector<std::string>& kinds, std::mt19937& random) {
  std::string text;
  while (text.size() < 2'000'000) {
    const bool giant = random() % 400 == 0;
    const std::string& kind = kinds[random() % kinds.size()];
    for (size_t n = giant ? 1 + random() % 1'500'000 / kind.size() : 1 + random() % 3; n > 0; --n)
      text += kind;
  }
  return text;
}

/// The exit code and message of the Error that `call` throws: "65 FILE: …"; "nothing" if it throws none.
template <class Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return concat(exit_code(error.kind()), " ", error.what());
  }
  return "nothing";
}

/// Expects that `call` throws an Error of this kind whose text has each of the `parts`.
template <class Call>
void expect_error(ErrorKind kind, const std::vector<std::string>& parts, Call&& call) {
  const std::string found = error_of(call);
  EXPECT_TRUE(found.starts_with(concat(exit_code(kind), " "))) << found;
  for (const std::string& part : parts)
    EXPECT_NE(found.find(part), std::string::npos) << found << "\n  lacks " << part;
}

/// Writes a file without waiting for the disk, unlike write_file.
inline void write_quickly(const std::string& path, const std::string& contents) {
  std::ofstream(path, std::ios::binary) << contents;
}

/// Calls `use` with damaged copies of `good`: cut short, and with one byte changed. `use` must throw an Error
/// of kind kData or return: many bytes can change without making a file malformed.
template <class Use>
void damage(const std::string& good, Use&& use) {
  std::mt19937 random(5);
  for (int round = 0; round < 150; ++round) {
    std::string bad = good;
    const size_t at = random() % bad.size();
    if (round % 3 == 0)
      bad.resize(at);
    else
      bad[at] = static_cast<char>(random());
    const std::string found = error_of([&] { use(bad); });
    EXPECT_TRUE(found == "nothing" || found.starts_with("65 ")) << "byte " << at << ": " << found;
  }
}

}  // namespace megalith::test
