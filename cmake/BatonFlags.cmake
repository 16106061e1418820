# How our own code is compiled. Third-party headers are SYSTEM, so the warnings are only about our
# code.

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# The link check makes a shared library of each layer; without semantic interposition the code is as
# fast as it would be in an executable alone.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
add_compile_options(-fno-semantic-interposition)

# Line tables are enough for a stack trace, and link in a fraction of the time of full debug info.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")

# Most of the time of a compilation goes into headers of libraries, which several files then share.
option(BATON_UNITY "Compile up to 8 files of a layer together, but not of tests" ON)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

# Some 150 programs are linked, each with gRPC: mold takes a fraction of the time of GNU ld.
find_program(MOLD_PROGRAM ld.mold)
if(MOLD_PROGRAM)
  add_link_options(-fuse-ld=mold)
endif()

if(BATON_SANITIZE)
  # -O1 compiles in three quarters of the time of -O2 here, and the tests take little longer.
  string(REPLACE "-O2" "-O1" CMAKE_CXX_FLAGS_RELWITHDEBINFO "${CMAKE_CXX_FLAGS_RELWITHDEBINFO}")
  add_compile_options(-fsanitize=${BATON_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${BATON_SANITIZE})
  if(BATON_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()

add_library(baton_warnings INTERFACE)
target_compile_options(baton_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
# g++ 12 is wrong about Results that are moved from, the more so the more files it compiles together.
target_compile_options(baton_warnings INTERFACE -Wno-maybe-uninitialized)
# clang's warnings differ from g++'s, and g++ is the compiler of record.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(baton_warnings INTERFACE -Werror)
endif()
