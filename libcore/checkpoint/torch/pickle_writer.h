#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "libcore/json/json.h"

namespace megalith {

/// Writes a pickle of protocol 2, which Python 2.3 and later and every torch can read. Functions are called
/// in the order in which Python reads: the beginning of a container, its parts (for a dict, keys and values
/// in turn), its end.
class PickleWriter {
 public:
  PickleWriter();

  void none() { op('N'); }
  void boolean(bool value) { op(value ? '\x88' : '\x89'); }
  void integer(int64_t value);
  void real(double value);
  void text(std::string_view utf8);
  void json(const Json& value);  // writes the object that Python's json.loads would return
  /// A class or function, by its name: "collections", "OrderedDict".
  void global(std::string_view module, std::string_view name);

  void begin_dict() { out_ += "}("; }
  void end_dict() { op('u'); }
  void begin_list() { out_ += "]("; }
  void end_list() { op('e'); }
  void begin_tuple() { op('('); }
  void end_tuple() { op('t'); }
  void empty_tuple() { op(')'); }

  void call() { op('R'); }          // (function, tuple) -> its result
  void construct() { op('\x81'); }  // (class, tuple) -> class.__new__(class, *tuple)
  void build() { op('b'); }         // (object, dict) -> the object with these attributes
  void persistent() { op('Q'); }    // persistent id (a tuple) -> the object that the loader finds for it

  std::string finish();  // the whole pickle

 private:
  void op(char code) { out_ += code; }

  std::string out_;
};

}  // namespace megalith
