#pragma once

#include <atomic>

namespace megalith::test {

/// A host name that getaddrinfo() of this program knows only after some look-ups; then it is 127.0.0.1.
inline constexpr const char* kLateName = "late.host.invalid";
/// The number of look-ups that find no address yet.
extern std::atomic<int> look_ups_until_it_is_there;

/// A host name that getaddrinfo() of this program looks up for 100 ms, in vain: its server is silent.
inline constexpr const char* kSlowName = "slow.host.invalid";

}  // namespace megalith::test
