# Warnings for our own targets. -Wextra keeps missing-field-initializers an error: a forgotten op tensor must not compile.
add_library(megalith_options INTERFACE)
target_compile_options(megalith_options INTERFACE -Wall -Wextra -Wconversion -Wshadow -Werror)
if(MEGALITH_SANITIZE)
  target_compile_options(megalith_options INTERFACE -fsanitize=${MEGALITH_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(megalith_options INTERFACE -fsanitize=${MEGALITH_SANITIZE})
endif()
