#pragma once

#include "pipeline/ends/kinds.h"

namespace baton::pipeline {

/// Standard output, one line per record.
inline constexpr EndKind kStdoutEnd{
    .name = "stdout", .shape = UrlShape::nothing, .schemes = {{{"stdout"}}}};
extern const SinkKind kStdoutSink;

/// A local file, one line per dead letter.
inline constexpr EndKind kFileEnd{
    .name = "file", .shape = UrlShape::path, .schemes = {{{"file:"}}}, .form = "PATH"};
extern const DeadLetterKind kFileLetters;

}  // namespace baton::pipeline
