#define MEGALITH_DEFINED
#include "tests/support/once/comparisons.h"
