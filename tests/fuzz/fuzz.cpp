#include "tests/fuzz/fuzz.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith::fuzz {

void use(std::string_view bytes, Target target) {
  try {
    target(bytes);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kData) throw;
  }
}

void accept(std::initializer_list<ErrorKind> kinds, const std::function<void()>& part) {
  try {
    part();
  } catch (const Error& error) {
    if (std::find(kinds.begin(), kinds.end(), error.kind()) == kinds.end()) throw;
  }
}

const char* file_of(std::string_view bytes, const char* name) {
  static const test::TempDir kFolder;  // a static object, so that the folder is removed at exit
  static std::map<std::string, std::string> paths;
  std::string& path = paths[name];
  if (path.empty()) {
    path = kFolder / name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  }
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  return path.c_str();
}

#ifndef MEGALITH_LIBFUZZER
namespace {

constexpr int kRounds = 1500;  // number of inputs without MEGALITH_FUZZ_SECONDS

std::vector<std::string> corpus_of(const char* name) {
  std::vector<std::string> paths, corpus;
  for (const auto& entry :
       std::filesystem::directory_iterator(concat(MEGALITH_SOURCE_DIR, "/tests/fuzz/corpus/", name)))
    paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) corpus.push_back(read_file(path));
  return corpus;
}

class Mutator {
 public:
  Mutator(const std::vector<std::string>& corpus, uint32_t seed) : corpus_(corpus), random_(seed) {}

  std::string next() {
    std::string bytes = pick();
    for (size_t n = 1 + below(4); n > 0; --n) change(bytes);
    return bytes;
  }

 private:
  size_t below(size_t n) { return n == 0 ? 0 : random_() % n; }
  const std::string& pick() { return corpus_[below(corpus_.size())]; }

  /// A short part of any input in the corpus, such as a word, a bracket or a number.
  std::string part() {
    const std::string& from = pick();
    return from.substr(below(from.size()), 1 + below(below(2) ? 8 : 64));
  }
  std::string number() {
    static constexpr const char* kNumbers[] = {"0",
                                               "-1",
                                               "1",
                                               "255",
                                               "256",
                                               "65536",
                                               "2147483647",
                                               "2147483648",
                                               "-2147483649",
                                               "4294967296",
                                               "9223372036854775807",
                                               "18446744073709551616",
                                               "1e999",
                                               "0.5",
                                               "null",
                                               "true",
                                               "\"\"",
                                               "[]",
                                               "{}"};
    return kNumbers[below(std::size(kNumbers))];
  }
  void change(std::string& bytes) {
    const size_t at = below(bytes.size() + 1);
    switch (below(9)) {
      case 0:
        bytes.resize(at);
        break;
      case 1:
        if (at < bytes.size()) bytes[at] = static_cast<char>(random_());
        break;
      case 2:
        if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 3:
        bytes.erase(at, 1 + below(16));
        break;
      case 4:
        bytes.insert(at, part());
        break;
      case 5:
        bytes.replace(at, std::min(bytes.size() - at, below(12)), part());
        break;
      case 6:
        bytes.insert(at, std::string(1 + below(40), static_cast<char>("[{\"( \n\\9\x80\xFF"[below(10)])));
        break;
      case 7: {  // replaces a number or word by a number
        const size_t begin = bytes.find_first_of(":,[ ", at);
        if (begin == std::string::npos) break;
        const size_t end = std::min(bytes.find_first_of(",]} \n", begin + 1), bytes.size());
        bytes.replace(begin + 1, end - begin - 1, number());
        break;
      }
      default: {  // joins the beginning of one input and the end of another
        const std::string& other = pick();
        bytes = bytes.substr(0, at) + other.substr(below(other.size()));
      }
    }
  }

  const std::vector<std::string>& corpus_;
  std::mt19937 random_;
};

/// Runs the target on the bytes. Returns "nothing", or a description of the unexpected exception.
std::string find_of(const std::string& bytes, Target target) {
  try {
    use(bytes, target);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "something thrown that is no exception";
  }
  return "nothing";
}

int number_of(const char* variable, int absent) {
  const char* text = std::getenv(variable);
  return text ? static_cast<int>(parse_int(text).value_or(absent)) : absent;
}

}  // namespace

void mutate(const char* name, Target target) {
  const std::vector<std::string> corpus = corpus_of(name);
  ASSERT_FALSE(corpus.empty()) << name;
  const char* keep = std::getenv("MEGALITH_FUZZ_KEEP");
  const auto run = [&](const std::string& bytes) {
    if (keep) std::ofstream(keep, std::ios::binary | std::ios::trunc) << bytes;
    const std::string find = find_of(bytes, target);
    EXPECT_EQ(find, "nothing") << name << " on " << quote(std::string_view(bytes).substr(0, 4000));
    return find == "nothing";
  };
  for (const std::string& bytes : corpus) run(bytes);
  Mutator mutator(corpus, static_cast<uint32_t>(number_of("MEGALITH_FUZZ_SEED", 1)));
  const std::chrono::seconds length(number_of("MEGALITH_FUZZ_SECONDS", 0));
  const auto start = std::chrono::steady_clock::now();
  int rounds = 0;
  while (rounds < kRounds || std::chrono::steady_clock::now() - start < length) {
    ++rounds;
    if (!run(mutator.next())) return;
  }
  testing::Test::RecordProperty("rounds", rounds);
}
#endif

}  // namespace megalith::fuzz
