#define MEGALITH_DEFINED
#include "tests/support/comparisons.h"
