#pragma once

namespace megalith {

/// The commit that was built: the first twelve digits of its hash, followed by "-dirty" if files differed
/// from it; "unknown" if the sources were in no repository. The build writes the function's file
/// (cmake/write_commit.cmake).
const char* built_commit();

}  // namespace megalith
