#pragma once

#include <memory>
#include <string>

#include "libcore/io/streams/line_reader.h"

namespace megalith {

/// What one document of plain text is. kNone: the input is not plain text.
enum class TextUnit { kNone, kFile, kParagraph };

/// Reads an input of plain text in batches of whole texts, which count as the batch's lines:
/// - kFile: the whole input is one text, every byte of it but a byte order mark at its beginning;
/// - kParagraph: consecutive lines that are not blank (they hold more than blanks and tabs) are a text,
///   without the end of its last line.
/// Lines end as for LineReader; the bytes themselves are not checked. An input without bytes has no text. Of
/// a text longer than LineLimits::longest, the batch keeps little more than that many bytes. Memory: one
/// batch and a window of 256 KiB. Throws kData if a text is longer than LineLimits::refused.
class TextReader final : public StreamRecords {
 public:
  /// Begins at `from`, a position of an earlier reader of the same input. `unit` is not kNone. `part`: as for
  /// LineReader.
  TextReader(InputOrigin origin, TextUnit unit, LineLimits limits, const Interrupt* interrupt = nullptr,
             const ReaderMark& from = {}, const StreamPart& part = {});

  bool next(LineBatch& batch, const Grow& grow) override;

 private:
  void skip_byte_order_mark();
  void take_file(LineBatch& batch, const Grow& grow);
  void take_paragraphs(LineBatch& batch, const Grow& grow);
  void take_line(LineBatch& batch, const Grow& grow);
  size_t scan_line(bool& ended);
  void end_line(LineBatch& batch);
  void end_text(LineBatch& batch);
  void append(LineBatch& batch, std::string_view bytes, const Grow& grow);
  bool full(const LineBatch& batch) const;

  TextUnit unit_;
  TextPlace place_;  // where the current line begins
  bool at_start_;
  bool in_text_ = false;       // whether a paragraph has begun
  bool blank_line_ = true;     // whether the current line has been blank so far
  size_t line_begin_ = 0;      // where the current line begins in the batch
  size_t left_out_ = 0;        // bytes of the current text that are not kept
  bool after_return_ = false;  // the current line has ended in \r, and a \n may follow
};

/// Opens a reader of lines (kNone) or of texts.
std::unique_ptr<RecordReader> open_records(const InputOrigin& origin, TextUnit unit, const LineLimits& limits,
                                           const Interrupt* interrupt = nullptr, const ReaderMark& from = {},
                                           const StreamPart& part = {});

}  // namespace megalith
