#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"

/// Fields of protocol buffers, encoded by hand: for the few responses where it pays. A field's
/// number is the generated constant of its message (kIdFieldNumber), which follows the schema.
namespace baton {

// A field's key: its number (below 16), and the encoding of its value.
constexpr char varint_field(unsigned number) { return static_cast<char>(number << 3U); }
constexpr char bytes_field(unsigned number) { return static_cast<char>(number << 3U | 2U); }

inline void append_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80U) {
    out.push_back(static_cast<char>(value | 0x80U));
    value >>= 7U;
  }
  out.push_back(static_cast<char>(value));
}

/// The bytes that append_blob() adds.
inline std::size_t blob_bytes(std::size_t size) { return 1 + varint_bytes(size) + size; }

inline void append_blob(std::string& out, unsigned number, std::string_view bytes) {
  out.push_back(bytes_field(number));
  append_varint(out, bytes.size());
  out.append(bytes);
}

/// The bytes that append_number() adds.
inline std::size_t number_bytes(std::uint64_t value) { return 1 + varint_bytes(value); }

inline void append_number(std::string& out, unsigned number, std::uint64_t value) {
  out.push_back(varint_field(number));
  append_varint(out, value);
}

}  // namespace baton
