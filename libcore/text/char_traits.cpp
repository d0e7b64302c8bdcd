#include "libcore/text/char_traits.h"

namespace megalith {

#include "libcore/text/char_traits.inc"

}  // namespace megalith
