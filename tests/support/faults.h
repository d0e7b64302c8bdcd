#pragma once

#include <functional>
#include <string>
#include <vector>

namespace megalith::test {

/// A fault of one of the calls that change the file system (open for writing, write, fsync, close, rename,
/// mkdir, unlink, …; those on sockets and pipes do not count).
struct Fault {
  enum Mode {
    kNone,
    kKill,   // SIGKILL; a write is half done first
    kFail,   // returns -1 with `error`
    kShort,  // a write or copy takes half of the bytes; other calls work as usual
  } mode = kNone;
  int at = 0;  // which call, from 1
  int error = 0;
  std::vector<std::string> every = {};  // instead of `at`: the fault hits each call of these functions
};

struct FaultRun {
  int calls = 0;       // number of calls made, up to the kill
  bool fired = false;  // the fault happened
  std::string call;    // the name of the function it hit
  bool killed = false;
  int exit_code = 0;  // an Error's code; 0: `body` returned
};

/// The fault of a child process. The parent creates this object before it forks, and reads it after the child
/// has ended.
class FaultWatch {
 public:
  FaultWatch();
  ~FaultWatch();
  FaultWatch(const FaultWatch&) = delete;
  FaultWatch& operator=(const FaultWatch&) = delete;

  /// In the child: from here on calls are counted and the fault can happen.
  void arm(const Fault& wanted);
  static void disarm();

  int calls() const;         // number of calls made while it was armed
  bool fired() const;        // the fault happened
  std::string call() const;  // the name of the function it hit

  struct Shared;

 private:
  Shared* shared_;  // in memory that both processes share
};

/// Runs `body` in a child process with the wanted fault. The functions of the C library are replaced in the
/// test binary itself, so calls from the library and from libstdc++ count; fsync is counted but not done (a
/// process's death loses nothing that was written).
FaultRun run_with_fault(const Fault& wanted, const std::function<void()>& body);

/// One call that changed the file system, as run_logged() saw it.
struct FileCall {
  enum Kind { kCreate, kWrite, kSync, kLink, kRename, kExchange, kMakeFolder, kRemove } kind;
  std::string path;   // of the file or folder; "nameless-N" for a file of O_TMPFILE, even after it is linked
  std::string other;  // new path of a rename or link
  std::string bytes;  // written, at `offset`
  size_t offset = 0;
};
/// Runs `body` and returns its calls in order. Paths are recorded as they were given.
std::vector<FileCall> run_logged(const std::function<void()>& body);

}  // namespace megalith::test
