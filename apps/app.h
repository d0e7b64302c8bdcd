#pragma once

#include <functional>

#include "libcore/options/cli.h"

namespace megalith {

/// What every main() does: runs `body` and turns an Error into one line on stderr, `NAME: error: TEXT`, and
/// its exit code; for wrong usage a second line names --help. Returns body's value if nothing is thrown; 70
/// for an exception that is not ours, 74 if stdout cannot be written; 0, without a message, if the reader of
/// stdout has gone. Opens standard descriptors that are closed.
int run_app(const char* name, const std::function<int()>& body);

/// Reads and checks the command line. Returns whether to continue; if not, --help or a similar option was
/// printed on stdout.
bool parse_options(Options& options, int argc, const char* const* argv);
/// The first half of parse_options(), so that an app may read a checkpoint before options.check().
bool read_options(Options& options, int argc, const char* const* argv);

}  // namespace megalith
