#include "cli/base/exit_code.h"

namespace baton::cli {

ExitCode exit_code_of(client::Code code) {
  using client::Code;
  switch (code) {
    case Code::invalid_argument: return ExitCode::usage;
    case Code::not_found:
    case Code::queue_not_found:
    case Code::message_not_found:
    case Code::bucket_not_found:
    case Code::stream_not_found:
    case Code::partition_not_found:
    case Code::offset_out_of_range: return ExitCode::not_found;
    case Code::already_exists:
    case Code::queue_exists:
    case Code::bucket_exists:
    case Code::stream_exists: return ExitCode::already_exists;
    case Code::unavailable:
    case Code::deadline_exceeded: return ExitCode::unreachable;
    case Code::resource_exhausted:
    case Code::queue_full:
    case Code::dedup_full: return ExitCode::limit;
    case Code::lease_lost: return ExitCode::partial;
    case Code::disk_full: return ExitCode::folder_unusable;
    case Code::read_only: return ExitCode::folder_damaged;
    case Code::revision_mismatch: return ExitCode::revision_mismatch;
    default: return ExitCode::failure;
  }
}

ExitCode exit_code_of(Errc code) {
  switch (code) {
    case Errc::invalid_argument:
    // Flags that contradict each other, or the data folder.
    case Errc::failed_precondition: return ExitCode::usage;
    case Errc::not_found:
    case Errc::queue_not_found:
    case Errc::message_not_found:
    case Errc::stream_not_found:
    case Errc::partition_not_found:
    case Errc::offset_out_of_range: return ExitCode::not_found;
    case Errc::unavailable:
    case Errc::deadline_exceeded: return ExitCode::unreachable;
    case Errc::folder_in_use: return ExitCode::folder_in_use;
    case Errc::journal_corrupt:
    case Errc::store_corrupt:
    case Errc::malformed:
    case Errc::round_not_found: return ExitCode::folder_damaged;
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
         "  2  the command line, a setting or a value in it is wrong\n"
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
