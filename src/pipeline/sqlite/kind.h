#pragma once

#include "pipeline/ends/kinds.h"

namespace baton::pipeline {

/// Tables of a SQLite file.
inline constexpr EndKind kSqliteEnd{
    .name = "sqlite", .shape = UrlShape::path, .schemes = {{{"sqlite:"}}}, .form = "PATH"};
extern const SinkKind kSqliteSink;

}  // namespace baton::pipeline
