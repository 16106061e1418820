#pragma once

/// What a build can do without. In a row of a registry, BATON_KAFKA(x) is x where Kafka is switched
/// on and nullptr where it is not, so that nothing of the kind's own library is needed to link.
///
/// CMake's options BATON_WITH_KAFKA and so on decide (cmake/BatonSwitches.cmake); only a registry
/// may include this header, because only registries are compiled with what the options say.

#if !defined(BATON_WITH_KAFKA) || !defined(BATON_WITH_NATS) || !defined(BATON_WITH_POSTGRES) || \
    !defined(BATON_WITH_ETCD)
#error "a registry is compiled with baton_switches() in its CMakeLists.txt"
#endif

#if BATON_WITH_KAFKA
#define BATON_KAFKA(adapter) adapter
#else
#define BATON_KAFKA(adapter) nullptr
#endif

#if BATON_WITH_NATS
#define BATON_NATS(adapter) adapter
#else
#define BATON_NATS(adapter) nullptr
#endif

#if BATON_WITH_POSTGRES
#define BATON_POSTGRES(adapter) adapter
#else
#define BATON_POSTGRES(adapter) nullptr
#endif

#if BATON_WITH_ETCD
#define BATON_ETCD(adapter) adapter
#else
#define BATON_ETCD(adapter) nullptr
#endif
