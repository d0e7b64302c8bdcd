#pragma once

#include <functional>
#include <string>
#include <vector>

namespace megalith::test {

/// A fault to inject into calls that change the file system (open for writing, write, fsync, close, rename,
/// mkdir, unlink, …). Calls on sockets and pipes do not count.
struct Fault {
  enum Mode {
    kNone,
    kKill,   // SIGKILL; a write is half done first
    kFail,   // returns -1 with `error`
    kShort,  // a write or copy takes half of the bytes; other calls work as usual
  } mode = kNone;
  int at = 0;  // number of the call that the fault hits, from 1
  int error = 0;
  std::vector<std::string> every = {};  // instead of `at`: the fault hits each call of these functions
};

struct FaultRun {
  int calls = 0;       // number of calls made, up to a kill
  bool fired = false;  // whether the fault happened
  std::string call;    // name of the function that the fault hit
  bool killed = false;
  int exit_code = 0;  // an Error's code; 0: `body` returned
};

/// Controls and observes the fault of a child process. The parent creates this object before it forks and
/// reads it after the child has ended.
class FaultWatch {
 public:
  FaultWatch();
  ~FaultWatch();
  FaultWatch(const FaultWatch&) = delete;
  FaultWatch& operator=(const FaultWatch&) = delete;

  /// Call this in the child: from then on, calls are counted and the fault can happen.
  void arm(const Fault& wanted);
  static void disarm();

  int calls() const;         // number of calls since arm()
  bool fired() const;        // whether the fault happened
  std::string call() const;  // name of the function that the fault hit

  struct Shared;

 private:
  Shared* shared_;  // in memory that both processes share
};

/// Runs `body` in a child process with the wanted fault. The test binary replaces functions of the C library,
/// so calls from the library and from libstdc++ count, too. fsync is counted but not executed: if only a
/// process dies, nothing that it wrote is lost.
FaultRun run_with_fault(const Fault& wanted, const std::function<void()>& body);

/// One call that changed the file system, as run_logged() recorded it.
struct FileCall {
  enum Kind { kCreate, kWrite, kSync, kLink, kRename, kExchange, kMakeFolder, kRemove } kind;
  std::string path;   // of the file or folder; "nameless-N" for a file of O_TMPFILE, even after it is linked
  std::string other;  // the new path, for a rename or link
  std::string bytes;  // the bytes written at `offset`
  size_t offset = 0;
};
/// Runs `body` and returns its calls in order, with paths as they were given.
std::vector<FileCall> run_logged(const std::function<void()>& body);

}  // namespace megalith::test
