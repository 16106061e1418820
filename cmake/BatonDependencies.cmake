# Every third-party library, found once. Which layer may use which: the LIBS of its baton_module(),
# and the table in tools/check_layers.py.

find_package(Threads REQUIRED)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
find_package(PkgConfig REQUIRED)

find_package(fmt REQUIRED CONFIG)
find_package(spdlog REQUIRED CONFIG)
find_package(gRPC REQUIRED CONFIG)
find_package(OpenSSL REQUIRED)
find_package(Protobuf REQUIRED)
find_package(CLI11 REQUIRED CONFIG)
find_package(nlohmann_json REQUIRED CONFIG)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET GLOBAL libxxhash)
pkg_check_modules(lz4 REQUIRED IMPORTED_TARGET GLOBAL liblz4)
pkg_check_modules(zstd REQUIRED IMPORTED_TARGET GLOBAL libzstd)
pkg_check_modules(zlib REQUIRED IMPORTED_TARGET GLOBAL zlib)
pkg_check_modules(snappy REQUIRED IMPORTED_TARGET GLOBAL snappy)
pkg_check_modules(simdjson REQUIRED IMPORTED_TARGET GLOBAL simdjson)
# Not under its own name: gRPC's package would take our re2_FOUND for its own, and miss re2::re2.
pkg_check_modules(re2_library REQUIRED IMPORTED_TARGET GLOBAL re2)
add_library(PkgConfig::re2 ALIAS PkgConfig::re2_library)
pkg_check_modules(rocksdb REQUIRED IMPORTED_TARGET GLOBAL rocksdb)
pkg_check_modules(yaml_cpp REQUIRED IMPORTED_TARGET GLOBAL yaml-cpp)
# The prometheus-cpp CMake package asks for curl and civetweb, which its core does not need.
pkg_check_modules(prometheus REQUIRED IMPORTED_TARGET GLOBAL prometheus-cpp-core)
pkg_check_modules(nats REQUIRED IMPORTED_TARGET GLOBAL libnats)
pkg_check_modules(sqlite REQUIRED IMPORTED_TARGET GLOBAL sqlite3)
pkg_check_modules(postgres REQUIRED IMPORTED_TARGET GLOBAL libpq)
pkg_check_modules(rdkafka REQUIRED IMPORTED_TARGET GLOBAL rdkafka)
pkg_check_modules(httplib REQUIRED IMPORTED_TARGET GLOBAL cpp-httplib)
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)

if(NOT BATON_FUZZ)
  find_package(GTest REQUIRED CONFIG)
  find_package(rapidcheck REQUIRED CONFIG)
  find_package(benchmark REQUIRED CONFIG)
endif()
