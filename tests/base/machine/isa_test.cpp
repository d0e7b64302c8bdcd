#include "libcore/base/machine/isa.h"

#include <optional>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "tests/support/environment.h"

namespace megalith {
namespace {

TEST(ChosenIsa, IsTheBestOrALowerOneThatTheEnvironmentNames) {
  {
    const test::Variable none("MEGALITH_ISA", std::nullopt);
    EXPECT_EQ(chosen_isa(), best_isa());
  }
  for (Isa isa : {Isa::kGeneric, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16}) {
    const test::Variable named("MEGALITH_ISA", name(isa));
    if (isa <= best_isa())
      EXPECT_EQ(chosen_isa(), isa);
    else
      EXPECT_THROW(chosen_isa(), Error);
  }
  const test::Variable unknown("MEGALITH_ISA", "avx1024");
  try {
    chosen_isa();
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_NE(std::string(error.what()).find("\"avx1024\""), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace megalith
