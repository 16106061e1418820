#pragma once

#include "pipeline/ends/kinds.h"

namespace baton::pipeline {

/// Tables of a PostgreSQL database.
inline constexpr EndKind kPostgresEnd{.name = "postgres",
                                      .shape = UrlShape::whole,
                                      .schemes = {{{"postgres://"}, {"postgresql://"}}},
                                      .form = "USER@HOST:PORT/DATABASE",
                                      .option = "BATON_WITH_POSTGRES"};
extern const SinkKind kPostgresSink;

}  // namespace baton::pipeline
