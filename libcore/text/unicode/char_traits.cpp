#include "libcore/text/unicode/char_traits.h"

namespace megalith {

#include "libcore/text/unicode/char_traits.inc"

}  // namespace megalith
