#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/parallel/communicator.h"

/// Ranks exchange bytes; the functions here exchange values. A value is a trivially copyable type (a number,
/// an enumeration, a struct of those), a std::string, a std::vector of values, or a struct with
/// `template <class V> void members(V&& visit) { visit(host, cpus); }`. Values are sent as raw memory, since
/// all ranks of a run are the same version of the program, on processors with the same byte order.
namespace megalith {

/// Returns every rank's bytes in rank order; blocks until all have arrived. The rendezvous provides it.
using HostExchange = std::function<std::vector<std::string>(std::string_view mine)>;

template <class T>
concept PlainValue = std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> && !std::ranges::view<T>;

template <class T>
concept HasMembers = requires(T value) {
  value.members([](auto&...) {});
};

/// Appends values to bytes, which outlive it; see packed().
class ValueWriter {
 public:
  explicit ValueWriter(std::string& bytes) : bytes_(bytes) {}
  template <class... T>
  void operator()(T&... values) {
    (put(values), ...);
  }

 private:
  template <class T>
  void put(T& value) {
    if constexpr (HasMembers<T>)
      value.members(*this);
    else if constexpr (PlainValue<T>)
      bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    else
      put_list(value);
  }
  template <class List>
  void put_list(List& list) {
    const uint64_t count = list.size();
    put(count);
    for (auto& one : list) put(one);
  }

  std::string& bytes_;
};

/// Takes values from bytes; see unpacked().
class ValueReader {
 public:
  explicit ValueReader(std::string_view bytes) : left_(bytes) {}
  template <class... T>
  void operator()(T&... values) {
    (get(values), ...);
  }
  void end() const { require(left_.empty()); }

 private:
  static void require(bool fits) {
    if (!fits) fail(ErrorKind::kData, "the bytes of a rank do not hold the value that was expected");
  }
  template <class T>
  void get(T& value) {
    if constexpr (HasMembers<T>) {
      value.members(*this);
    } else if constexpr (std::is_same_v<T, bool>) {
      uint8_t byte = 0;
      get(byte);
      require(byte <= 1);
      value = byte == 1;
    } else if constexpr (PlainValue<T>) {
      require(left_.size() >= sizeof value);
      std::memcpy(&value, left_.data(), sizeof value);
      left_.remove_prefix(sizeof value);
    } else {
      get_list(value);
    }
  }
  template <class List>
  void get_list(List& list) {
    uint64_t count = 0;
    get(count);
    require(count <= left_.size());  // before allocating; every element takes at least one byte
    list.resize(count);
    for (auto& one : list) get(one);
  }

  std::string_view left_;
};

/// packed() turns a value into bytes, and unpacked() turns the bytes back into the value. kData when the
/// bytes are not those of a T.
template <class T>
std::string packed(T value) {
  std::string bytes;
  ValueWriter write(bytes);
  write(value);
  return bytes;
}
template <class T>
T unpacked(std::string_view bytes) {
  T value{};
  ValueReader read(bytes);
  read(value);
  read.end();
  return value;
}

/// unpacked() of what a rank sent: kComm, with the rank, when the bytes are not those of a T.
template <class T>
T unpacked_of(size_t rank, std::string_view bytes) {
  try {
    return unpacked<T>(bytes);
  } catch (const Error& error) {
    fail(ErrorKind::kComm, "rank ", rank, ": ", error.what(), "; run the same program on all ranks");
  }
}
template <class T>
std::vector<T> unpacked_all(const std::vector<std::string>& all) {
  std::vector<T> values;
  for (const std::string& bytes : all) values.push_back(unpacked_of<T>(values.size(), bytes));
  return values;
}

/// Every rank's value in rank order: Communicator::exchange() of values. Collective.
template <class T>
std::vector<T> exchange_values(Communicator& ranks, const T& mine) {
  return unpacked_all<T>(ranks.exchange(packed(mine)));
}
template <class T>
std::vector<T> exchange_values(const HostExchange& exchange, const T& mine) {
  return unpacked_all<T>(exchange(packed(mine)));
}

/// Returns rank 0's value on every rank; the other ranks' values are ignored. Collective.
template <class T>
T rank0_value(Communicator& ranks, const T& mine) {
  return unpacked_of<T>(0, ranks.exchange(packed(mine)).front());
}

}  // namespace megalith
