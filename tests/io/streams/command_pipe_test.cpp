#include "libcore/io/streams/command_pipe.h"

#include <chrono>
#include <csignal>
#include <fstream>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "libcore/io/streams/input_stream.h"
#include "libcore/io/streams/stop_signal.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

std::string all_of(const std::string& command) {
  InputStream stream({"the object", command});
  std::string text;
  char block[7];
  while (const size_t n = stream.read(block, sizeof block)) text.append(block, n);
  return text;
}

/// Sends this process SIGTERM when a read that begins now has most likely come to where it waits. If the
/// signal comes before, the read must end in the same way.
std::jthread stop_soon() {
  return std::jthread([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    ::kill(::getpid(), SIGTERM);
  });
}

/// The message of the kComm that reading ends with.
std::string error_of(const std::string& command) {
  try {
    all_of(command);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kComm);
    return error.what();
  }
  return "no error";
}

TEST(CommandPipe, IsAnInputStream) {
  EXPECT_EQ(all_of("echo one; echo two"), "one\ntwo\n");
  EXPECT_EQ(all_of("true"), "");
  EXPECT_EQ(all_of("echo compressed | gzip"), "compressed\n");
  EXPECT_EQ(all_of("cat"), "") << "it has no stdin";
}

TEST(CommandPipe, FailsIfItsCommandFails) {
  EXPECT_EQ(
      error_of("echo half; exit 3"),
      "the object: `echo half; exit 3` ended with exit code 3; its own messages are on stderr; try again");
  EXPECT_NE(error_of("no-such-command-here 2> /dev/null").find("exit code 127"), std::string::npos);
  EXPECT_NE(error_of("kill -9 $$").find("was ended by signal 9"), std::string::npos);
  EXPECT_NE(error_of("echo x | gzip | head -c 12; exit 1").find("exit code 1"), std::string::npos)
      << "not a damaged file: the command failed";
}

// Programs inherit from their starter that SIGCHLD is ignored. Then the system forgets exit codes.
TEST(CommandPipe, FailsIfItsExitCodeIsLost) {
  struct sigaction ignored {
  }, before{};
  ignored.sa_handler = SIG_IGN;
  ASSERT_EQ(::sigaction(SIGCHLD, &ignored, &before), 0);
  std::string message = "no error";
  try {
    all_of("echo half; exit 3");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kSystem);
    message = error.what();
  }
  ::sigaction(SIGCHLD, &before, nullptr);
  EXPECT_NE(message.find("the object: cannot learn how `echo half; exit 3` ended: "), std::string::npos)
      << message;
}

// A run that resumes would otherwise take half a record for a whole one, and the rest for the next one.
TEST(CommandPipe, IsNotAtItsEndWhenAStopIsAsked) {
  const Interrupt interrupt;
  const StopSignal signal(&interrupt);
  InputStream stream({"x", "printf '{\"text\": \"half of it'; sleep 1000"}, &interrupt);
  char block[64];
  EXPECT_EQ(stream.read(block, sizeof block), 20U);
  const std::jthread sender = stop_soon();
  EXPECT_THROW(stream.read(block, sizeof block), Stopped);
}

// A command may go on after it has closed its stdout.
TEST(CommandPipe, DoesNotWaitForItsEndWhenAStopIsAsked) {
  const Interrupt interrupt;
  const StopSignal signal(&interrupt);
  InputStream stream({"x", "printf all; exec >&-; sleep 1000"}, &interrupt);
  char block[64];
  EXPECT_EQ(stream.read(block, sizeof block), 3U);
  const std::jthread sender = stop_soon();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THROW(stream.read(block, sizeof block), Stopped);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));  // not 1000
}

// Another thread of the reader has failed: its error must not wait for the command.
TEST(CommandPipe, DoesNotWaitForItsEndOnceItIsInterrupted) {
  const Interrupt interrupt;
  InputStream stream({"the object", "printf all; exec >&-; sleep 1000"}, &interrupt);
  char block[64];
  EXPECT_EQ(stream.read(block, sizeof block), 3U);
  const std::jthread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    interrupt.set();
  });
  const auto begin = std::chrono::steady_clock::now();
  try {
    stream.read(block, sizeof block);
    ADD_FAILURE() << "the end of an object whose command still runs";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kComm);
    EXPECT_NE(std::string(error.what()).find("was interrupted"), std::string::npos) << error.what();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));  // not 1000
}

TEST(CommandPipe, EndsItsWholeGroupWithTheStream) {
  const test::TempDir dir;
  {
    InputStream stream({"x", "(sleep 1000 & echo $! > '" + dir / "pid" + "'; echo ready; wait) | cat"});
    char block[16];
    EXPECT_EQ(stream.read(block, sizeof block), 6U);
  }
  const pid_t sleeper = std::stoi(read_file(dir / "pid"));
  const auto runs = [&] {  // where nobody reaps orphans, it stays as a zombie
    std::ifstream file(concat("/proc/", sleeper, "/stat"));
    std::string stat;
    return std::getline(file, stat) && stat.find(") Z ") == std::string::npos;
  };
  for (int i = 0; i < 500 && runs(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_FALSE(runs());
}

}  // namespace
}  // namespace megalith
