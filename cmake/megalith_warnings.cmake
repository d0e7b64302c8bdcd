# Warnings for our own targets. -Wextra keeps missing-field-initializers an error: a forgotten op tensor must not compile.
add_library(megalith_flags INTERFACE)
target_compile_options(megalith_flags INTERFACE -Wall -Wextra -Wconversion -Wshadow -Werror)
# GCC 12 sees overlapping copies in std::string::insert and operator+ where there are none (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(megalith_flags INTERFACE -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds)
endif()
# In C++, GCC's -Wconversion leaves signs out; clang's takes them in. The code is held to GCC's, and names its warnings in pragmas.
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(megalith_flags INTERFACE -Wno-sign-conversion -Wno-unknown-warning-option)
endif()
if(MEGALITH_PCH)
  target_compile_options(megalith_flags INTERFACE -fpch-preprocess)  # lets ccache see the precompiled header
endif()
# GCC's garbage collector takes a fourteenth of the time of a compilation, since each collection walks the whole precompiled header. No file
# here needs half a gigabyte, so with a heap of that size GCC collects nothing.
target_compile_options(megalith_flags INTERFACE "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:SHELL:--param ggc-min-heapsize=524288>")
if(MEGALITH_SANITIZE)
  target_compile_options(megalith_flags INTERFACE -fsanitize=${MEGALITH_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(megalith_flags INTERFACE -fsanitize=${MEGALITH_SANITIZE})
  # Instrumented, GCC 12 takes std::regex's own members for uninitialised ones (GCC bug 105562).
  target_compile_options(megalith_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()
