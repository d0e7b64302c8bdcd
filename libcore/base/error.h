#pragma once

#include <concepts>
#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace megalith {

/// The kind of a failure, as the user sees it. The kind decides the exit code (sysexits.h).
enum class ErrorKind {
  kUsage = 64,     // options contradict each other or are unknown
  kData = 65,      // an input file holds invalid data
  kNoInput = 66,   // an input file does not exist
  kDevice = 69,    // a device or its library does not answer
  kInternal = 70,  // a bug
  kSystem = 71,    // the system refuses memory, a thread or a stack
  kIo = 74,        // reading or writing failed
  kComm = 75,      // a peer failed; try again
};

constexpr int exit_code(ErrorKind kind) {
  return static_cast<int>(kind);
}

/// The type of all errors that the library reports. `what()` is a complete message: where the error is, what
/// was found, what was expected, and what to do. (A requested stop is not an error: it throws Stopped.)
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& what) : std::runtime_error(what), kind_(kind) {}
  ~Error() override;  // out of line: otherwise every file that throws would hold the class's tables
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

/// A lack of memory: of this machine (kSystem) or of a device (kDevice).
class NoMemory : public Error {
 public:
  using Error::Error;
  ~NoMemory() override;
};

// Helpers of concat(). Text and integers do not use a std::ostringstream: constructing one takes longer than
// the rest of building a short name. It took a ninth of the time of planning a model of 22 billion
// parameters.
void concat_text(std::string& to, std::string_view text);
void concat_signed(std::string& to, int64_t value);
void concat_unsigned(std::string& to, uint64_t value);
void concat_streamed(std::string& to, const void* part, void (*write)(std::ostream&, const void*));

template <class Part>
void concat_part(std::string& to, const Part& part) {
  if constexpr (std::convertible_to<const Part&, std::string_view>) {
    concat_text(to, part);
  } else if constexpr (std::same_as<Part, char>) {
    concat_text(to, {&part, 1});
  } else if constexpr (std::signed_integral<Part> && sizeof(Part) > 1) {
    concat_signed(to, part);
  } else if constexpr (std::unsigned_integral<Part> && sizeof(Part) > 1) {
    concat_unsigned(to, part);
  } else {
    concat_streamed(to, &part,
                    [](std::ostream& out, const void* of) { out << *static_cast<const Part*>(of); });
  }
}

/// Concatenates the parts into one string. A part is anything that operator<< can write.
template <class... Parts>
std::string concat(const Parts&... parts) {
  std::string text;
  (concat_part(text, parts), ...);
  return text;
}

/// Throws Error with the parts concatenated.
template <class... Parts>
[[noreturn]] void fail(ErrorKind kind, const Parts&... parts) {
  throw Error(kind, concat(parts...));
}

}  // namespace megalith
