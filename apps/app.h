#pragma once

#include <functional>
#include <vector>

#include "libcore/options/cli.h"

namespace megalith {

/// Runs `body`, the body of a main(), and returns the exit code. First opens standard descriptors that are
/// closed. Returns body's value if nothing is thrown. An Error becomes one line on stderr, `NAME: error:
/// TEXT`, and its exit code; for wrong usage a second line names --help. Memory, a thread or a stack that the
/// system refuses gives 71, any other exception 70. If stdout cannot be written, the code is 74; if its
/// reader has gone, the code is 0, without a message.
int run_app(const char* name, const std::function<int()>& body);

/// Reads and checks the command line. Returns whether to continue; if not, --help or a similar option was
/// printed on stdout.
bool parse_options(Options& options, int argc, const char* const* argv);
/// The command line, in which a run file that follows no option, as in PaddleNLP's run_finetune.py FILE.json,
/// is the value of --config: the first such word that ends with .json, .yaml or .yml, if it is among the
/// first `within` words after the program's name. The result points into `argv`.
std::vector<const char*> with_named_file(int argc, const char* const* argv, int within);
/// The first half of parse_options(): reads the command line without checking it. For an app that must read a
/// checkpoint before it calls options.check().
bool read_options(Options& options, int argc, const char* const* argv);

}  // namespace megalith
