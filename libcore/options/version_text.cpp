#include "libcore/options/version_text.h"

#include "libcore/base/commit.h"
#include "libcore/base/error.h"
#include "libcore/base/machine/isa.h"
#include "libcore/base/plugins/library_folders.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

#if defined(__clang__)
constexpr char kCompiler[] = "clang " __clang_version__;
#else
constexpr char kCompiler[] = "g++ " __VERSION__;
#endif

}  // namespace

std::string version_text(const std::string& program) {
  const std::vector<std::string> plugins = plugins_in(own_library_folders());
  return concat(program, " " MEGALITH_VERSION "\ncommit: ", built_commit(), "\ncompiler: ", kCompiler,
                "\nkernels: ", name(best_isa()),
                "\nplugins: ", plugins.empty() ? "none" : join(plugins, ", "), "\n");
}

}  // namespace megalith
