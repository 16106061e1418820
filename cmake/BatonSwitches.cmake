# What a build can do without. A kind of source, sink, dead letters or store lives in a folder of its own with a
# kind.h; a folder whose option is off is left out, and with it its library. The registry still knows the names, so
# that a URL of such a kind gets an error that says which option to switch on (src/base/switches.h).

option(BATON_WITH_KAFKA "Pipelines from and to Kafka; needs librdkafka" ON)
option(BATON_WITH_NATS "Pipelines from NATS, and NATS as a store of workers; needs libnats" ON)
option(BATON_WITH_POSTGRES "Pipelines into PostgreSQL; needs libpq" ON)
option(BATON_WITH_ETCD "etcd as a store of workers" ON)
include(CMakeDependentOption)
cmake_dependent_option(BATON_TESTS "Tests and benchmarks, which need every kind" ON
  "BATON_WITH_KAFKA;BATON_WITH_NATS;BATON_WITH_POSTGRES;BATON_WITH_ETCD" OFF)
set(BATON_SWITCHES BATON_WITH_KAFKA BATON_WITH_NATS BATON_WITH_POSTGRES BATON_WITH_ETCD)

# baton_kinds(<group>): adds each folder of src/<group> that has a kind.h, and sets BATON_KINDS_<group> to the layers that are
# switched on, for the DEPS of the group's registry. A kind with an option begins its CMakeLists.txt with
# `if(NOT BATON_WITH_...) return()`; the targets of the others are added to BATON_KINDS_ALWAYS.
macro(baton_kinds group)
  set(BATON_KINDS_${group})
  file(GLOB kinds CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/src/${group} ${CMAKE_SOURCE_DIR}/src/${group}/*/kind.h)
  foreach(kind ${kinds})
    cmake_path(GET kind PARENT_PATH kind)
    add_subdirectory(src/${group}/${kind})
    if(TARGET baton_${group}_${kind})
      list(APPEND BATON_KINDS_${group} ${group}/${kind})
      file(STRINGS ${CMAKE_SOURCE_DIR}/src/${group}/${kind}/CMakeLists.txt option REGEX "BATON_WITH_")
      if(NOT option)
        list(APPEND BATON_KINDS_ALWAYS baton_${group}_${kind})
      endif()
    endif()
  endforeach()
endmacro()

# baton_switches(<target>): compiles a registry with what the options say.
function(baton_switches target)
  foreach(switch ${BATON_SWITCHES})
    target_compile_definitions(${target} PRIVATE ${switch}=$<BOOL:${${switch}}>)
  endforeach()
endfunction()
