#include "cli/base/exit_code.h"

namespace baton::cli {

ExitCode exit_code_of(Errc code) {
  switch (code) {
    case Errc::invalid_argument:
    // Settings that contradict each other, the data folder, a table, or what is connected.
    case Errc::failed_precondition: return ExitCode::usage;
    case Errc::not_found:
    case Errc::queue_not_found:
    case Errc::message_not_found:
    case Errc::bucket_not_found:
    case Errc::stream_not_found:
    case Errc::partition_not_found:
    case Errc::offset_out_of_range: return ExitCode::not_found;
    case Errc::already_exists:
    case Errc::queue_exists:
    case Errc::bucket_exists:
    case Errc::stream_exists: return ExitCode::already_exists;
    case Errc::unavailable:
    case Errc::deadline_exceeded: return ExitCode::unreachable;
    case Errc::resource_exhausted:
    case Errc::queue_full:
    case Errc::dedup_full: return ExitCode::limit;
    case Errc::lease_lost: return ExitCode::partial;
    case Errc::revision_mismatch: return ExitCode::revision_mismatch;
    case Errc::folder_in_use: return ExitCode::folder_in_use;
    case Errc::journal_corrupt:
    case Errc::store_corrupt:
    case Errc::malformed:
    case Errc::round_not_found:
    case Errc::read_only: return ExitCode::folder_damaged;
    case Errc::store_too_new: return ExitCode::folder_too_new;
    case Errc::disk_full:
    case Errc::io_error:
    case Errc::journal_full: return ExitCode::folder_unusable;
    default: return ExitCode::failure;
  }
}

std::string_view exit_code_help() {
  return "Exit codes:\n"
         "  0  done\n"
         "  1  failed for another reason than those below\n"
         "  2  a flag, a setting or a value is wrong, or the state does not allow it\n"
         "  3  no such queue, message, stream, partition, offset, group, bucket or key\n"
         "  4  it exists already\n"
         "  5  the broker cannot be reached, or cannot accept the request now\n"
         "  6  refused by a configured limit\n"
         "  7  a lease was lost, or some of the items failed\n"
         "  8  no message, record or change came within --wait\n"
         "  9  the data folder is in use by another process\n"
         "  10 the data folder is damaged\n"
         "  11 the data folder was written by a newer version\n"
         "  12 the data folder cannot be read or written, or its disk is full\n"
         "  13 the key was not at the expected revision\n"
         "  70 the broker ended itself after a failed write or fsync\n"
         "  75 the source or sink of a pipeline was unavailable for too long\n";
}

}  // namespace baton::cli
