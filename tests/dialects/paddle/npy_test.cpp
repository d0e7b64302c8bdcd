// The expected values are what numpy reads from the same files: tools/golden/make_npy.py.
#include "libcore/dialects/paddle/npy.h"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

std::optional<NpyArray> parsed(std::string_view file) {
  try {
    return parse_npy(file, "a.npy");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData) << error.what();
    return {};
  }
}

std::string bytes_of(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

TEST(Npy, TakesNothingThatNumpyRefusesOrReadsOtherwise) {
  int taken = 0, refused = 0;
  for (const std::string& line :
       split(trim(read_file(test::test_data("dialects/paddle/goldens/npy.jsonl"))), '\n')) {
    const Json golden = Json::parse(line, "npy.jsonl");
    const std::string file = bytes_of(golden["file"].as_string());
    const auto ours = parsed(file);
    ++(ours ? taken : refused);
    if (!ours) continue;
    const Json& numpy = golden["numpy"];
    ASSERT_TRUE(numpy.is_object()) << "numpy refuses " << quote(file);
    EXPECT_EQ(numpy["type"].as_string().substr(1), concat(std::string(1, ours->kind), ours->width))
        << quote(file);
    const Json::Array& values = numpy["values"].as_array();
    ASSERT_EQ(ours->size(), values.size()) << quote(file);
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_EQ(std::to_string(static_cast<uint64_t>(ours->at(i))), values[i].as_string()) << quote(file);
  }
  EXPECT_GT(taken, 50);
  EXPECT_GT(refused, 500);
}

/// A file of version 1.0 with this header.
std::string npy(const std::string& header, const std::string& elements = std::string(4, '\1')) {
  return "\x93NUMPY" + std::string("\1\0", 2) + static_cast<char>(header.size() & 255) +
         static_cast<char>(header.size() >> 8) + header + elements;
}

TEST(Npy, RefusesHeadersOfTwoMinds) {
  const std::string good = "{'descr': '<u2', 'fortran_order': False, 'shape': (2,), }  \n";
  ASSERT_TRUE(parsed(npy(good)));
  EXPECT_EQ(parsed(npy(good))->size(), 2U);
  for (const std::string& header :
       {std::string("{'descr': '<u2', 'fortran_order': False, 'shape': (2,), 'shape': (2,)}"),
        std::string("{'descr': '<u2', 'descr': '<u2', 'fortran_order': False, 'shape': (2,)}"),
        std::string("{'descr': '<u2', 'fortran_order': False, 'shape': (2,) + (1,)}"),
        std::string("{'descr': '<u2', 'fortran_order': False, 'shape': (2,)"),
        std::string("{'descr': '<u2', 'fortran_order': False, 'shape': (2,)}\0\n", 58),
        std::string("{'descr': '<u2', 'fortran_order': False, 'shape': (2,)} x"),
        std::string("{'descr': '<u2', 'shape': (2,)}"),
        std::string("{'fortran_order': False, 'shape': (2,)}"),
        std::string("{'descr': '<u2', 'fortran_order': False, 'shape': (2)}"),
        std::string("{'descr': '<u2', 'fortran_order': False, 'shape': (2, 1)}"),
        std::string("{'descr': '<u2', 'fortran_order': 0, 'shape': (2,)}"),
        std::string("{'descr': '<u2', 'fortran_order': False, 'shape': (2,), 'more': 1}"),
        std::string(20000, ' ') + good, std::string()})
    EXPECT_FALSE(parsed(npy(header))) << header;
  for (const char version : {'\0', '\4', '\xff'}) {
    std::string file = npy(good);
    file[6] = version;
    EXPECT_FALSE(parsed(file)) << int{version};
  }
  for (const size_t size : {size_t{0}, size_t{3}, size_t{5}})
    EXPECT_FALSE(parsed(npy(good, std::string(size, '\1')))) << size;
}

}  // namespace
}  // namespace megalith
