#pragma once

#include <atomic>

namespace megalith::test {

/// A host name that getaddrinfo() of this program knows only after some look-ups; then it is 127.0.0.1.
inline constexpr const char* kLateName = "late.host.invalid";
/// The number of look-ups that find no address yet.
extern std::atomic<int> look_ups_until_it_is_there;

}  // namespace megalith::test
