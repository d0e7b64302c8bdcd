#include "libcore/base/isa.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "libcore/base/error.h"

namespace megalith {
namespace {

TEST(ChosenIsa, IsTheBestOrALowerOneThatTheEnvironmentNames) {
  const char* const old = std::getenv("MEGALITH_ISA");
  const std::string kept = old ? old : "";
  unsetenv("MEGALITH_ISA");
  EXPECT_EQ(chosen_isa(), best_isa());
  for (Isa isa : {Isa::kGeneric, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16}) {
    setenv("MEGALITH_ISA", name(isa), 1);
    if (isa <= best_isa())
      EXPECT_EQ(chosen_isa(), isa);
    else
      EXPECT_THROW(chosen_isa(), Error);
  }
  setenv("MEGALITH_ISA", "avx1024", 1);
  try {
    chosen_isa();
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_NE(std::string(error.what()).find("\"avx1024\""), std::string::npos) << error.what();
  }
  setenv("MEGALITH_ISA", kept.c_str(), 1);
}

}  // namespace
}  // namespace megalith
