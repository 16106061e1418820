#pragma once

#include <cstddef>
#include <cstdint>

/// Every limit of this layer. Input beyond a limit is refused with the name and value of the limit.
namespace baton::schema {

// Documents.
inline constexpr std::size_t kDocumentBytesDefault = std::size_t{1} << 20U;
inline constexpr std::size_t kDocumentBytesMax = std::size_t{16} << 20U;
inline constexpr std::size_t kDepthMax = 64;               // Of nested arrays and objects.
inline constexpr std::int64_t kExponentMax = 999'999'999;  // Of a number's written exponent.

// Schemas.
inline constexpr std::size_t kSchemaBytesMax = std::size_t{1} << 20U;
inline constexpr std::size_t kSubschemasMax = 10'000;
inline constexpr std::size_t kPropertiesMax = 1'024;  // Names in the rules of one subschema.
inline constexpr std::size_t kMultipleOfDigitsMax = 18;
inline constexpr std::size_t kPatternsMax = 256;  // In one schema.
inline constexpr std::size_t kPatternBytesMax = 1'024;
inline constexpr std::int64_t kPatternMemoryBytes = std::int64_t{1} << 20U;  // Of each, compiled.

// The work of one validation. A document takes a few steps for each of its values, unless the
// schema tries many branches at every level: the limit ends such a validation.
inline constexpr std::uint64_t kStepsMin = 100'000;
inline constexpr std::uint64_t kStepsPerValue = 256;
inline constexpr std::size_t kBytesPerStepGranted = 16;   // Of the document.
inline constexpr std::size_t kBytesPerStepCharged = 256;  // Of a text, each time it is read.
inline constexpr std::size_t kFramesMax = 8'192;

// Mappings.
inline constexpr std::size_t kTablesMax = 64;
inline constexpr std::size_t kColumnsMax = 256;  // Of one table.
inline constexpr std::size_t kColumnPathBytesMax = 512;
inline constexpr std::size_t kColumnPathStepsMax = 16;
inline constexpr std::size_t kIdentifierBytesMax = 63;  // PostgreSQL's.

// The most bytes of a document that an error quotes.
inline constexpr std::size_t kExcerptBytes = 64;

}  // namespace baton::schema
