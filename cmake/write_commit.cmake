# cmake -DSOURCE=DIR -DOUTPUT=FILE -P write_commit.cmake: FILE defines the commit that is built, as libcore/base/commit.h declares it. A file
# that would be the same is left alone, so that nothing is compiled again.
set(git git --no-optional-locks -C ${SOURCE})
execute_process(COMMAND ${git} rev-parse --show-cdup RESULT_VARIABLE failed OUTPUT_VARIABLE up OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT failed AND up STREQUAL "")  # not a folder within another project's repository
  execute_process(COMMAND ${git} describe --always --dirty --abbrev=12 --exclude=* OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE
                  ERROR_QUIET)
endif()
if(NOT commit)
  set(commit "unknown")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT [[
#include "libcore/base/commit.h"

const char* megalith::built_commit() {
  return "@commit@";
}
]] @ONLY)
