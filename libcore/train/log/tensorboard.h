#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace megalith {

/// CRC-32C (Castagnoli), as TFRecord files use it.
uint32_t crc32c(std::span<const std::byte> bytes);

/// Writes one TensorBoard event file, FOLDER/events.out.tfevents.TIME.HOST.PID: TFRecords (length, masked
/// CRC-32C of it, data, masked CRC-32C of it) of TensorFlow Event messages. Throws kIo. Events become visible
/// to TensorBoard with flush().
class EventWriter {
 public:
  /// `start`: the first step that will be written. If it is above 0 (a resumed run), a session mark is
  /// written. It makes TensorBoard drop what earlier files of the folder hold for `start` and later steps.
  EventWriter(const std::string& folder, int64_t start);
  ~EventWriter();
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  void scalar(std::string_view tag, int64_t step, double value);
  void text(std::string_view tag, int64_t step, std::string_view utf8);
  void flush();
  const std::string& path() const { return path_; }

 private:
  void write_event(int64_t step, std::string_view payload);

  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

}  // namespace megalith
