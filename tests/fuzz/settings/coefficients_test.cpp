#include "libcore/plan/device/coefficients.h"

#include "tests/fuzz/fuzz.h"

MEGALITH_FUZZ_TARGET(coefficients) {
  using namespace megalith;
  read_coefficients(fuzz::file_of(bytes, "coefficients.txt"), fitted_coefficients());
}
