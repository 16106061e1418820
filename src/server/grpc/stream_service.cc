#include "server/grpc/stream_service.h"

#include <utility>

#include <fmt/format.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include "base/names.h"
#include "server/grpc/gather.h"
#include "server/grpc/parse_request.h"
#include "server/grpc/stream_calls.h"
#include "server/grpc/stream_convert.h"
#include "server/grpc/stream_port.h"
#include "server/grpc/unary.h"
#include "server/session/checks.h"
#include "server/session/read_session.h"
#include "server/session/subscription_session.h"

namespace baton {
namespace {

using Reactor = StreamService::Reactor;

Result<GroupCommand> group_command(const std::string& stream, const std::string& group,
                                   GroupCommand::What what) {
  GroupCommand out{.stream = stream, .group = group, .what = what, .error = {}, .partitions = {}};
  BATON_TRY_STATUS(check(out));
  return out;
}

void describe(const std::vector<GroupReport>& groups, Instant now,
              google::protobuf::RepeatedPtrField<v1::Group>& out) {
  for (const GroupReport& group : groups) describe(group, now, *out.Add());
}

}  // namespace

Reactor* StreamService::CreateStream(Context* context, const v1::CreateStreamRequest* request,
                                     v1::CreateStreamResponse* response) {
  return run(UnaryCall(context, state_, Operation::create_stream), convert(*request),
             [response](const CreateStreamCommand& done) {
               describe(done.description, *response->mutable_stream());
             });
}

Reactor* StreamService::UpdateStream(Context* context, const v1::UpdateStreamRequest* request,
                                     v1::UpdateStreamResponse* response) {
  return run(UnaryCall(context, state_, Operation::update_stream), convert(*request),
             [response](const UpdateStreamCommand& done) {
               describe(done.description, *response->mutable_stream());
             });
}

Reactor* StreamService::DeleteStream(Context* context, const v1::DeleteStreamRequest* request,
                                     v1::DeleteStreamResponse* /*response*/) {
  return run(UnaryCall(context, state_, Operation::delete_stream), convert(*request),
             [](const DeleteStreamCommand&) {});
}

Reactor* StreamService::ListStreams(Context* context, const v1::ListStreamsRequest* request,
                                    v1::ListStreamsResponse* response) {
  return ask_for_page(
      UnaryCall(context, state_, Operation::list_streams), convert(*request),
      [response](std::vector<ListStreamsCommand>& answers, const Page& page) {
        constexpr auto kKey = &StreamDescription::name;
        const auto listed =
            merge_page(answers, &ListStreamsCommand::descriptions, kKey, page.items_max);
        response->set_next_page_token(
            fill_page(page, listed, *response->mutable_streams(), kKey,
                      [](const auto& stream, v1::Stream& shown) { describe(stream, shown); }));
      });
}

Reactor* StreamService::DescribeStream(Context* context, const v1::DescribeStreamRequest* request,
                                       v1::DescribeStreamResponse* response) {
  return run(UnaryCall(context, state_, Operation::describe_stream), convert(*request),
             [response](const DescribeStreamCommand& done) {
               describe(done.description, *response->mutable_stream());
             });
}

Reactor* StreamService::InitProducer(Context* context, const v1::InitProducerRequest* request,
                                     v1::InitProducerResponse* response) {
  return run(UnaryCall(context, state_, Operation::init_producer), convert(*request),
             [response](const StartProducerCommand& done) {
               response->set_producer_id(done.started.id.value);
               response->set_producer_epoch(done.started.epoch.value);
             });
}

Reactor* StreamService::Append(Context* context, const v1::AppendRequest* request,
                               v1::AppendResponse* response) {
  const UnaryCall call(context, state_, Operation::append);
  Result<AppendCommand> command = convert(own(request));
  const Status alive = call.alive(false);
  if (!command.has_value() || !alive.has_value()) {
    call.finish(to_status(command.has_value() ? alive.error() : command.error()));
    return call.reactor();
  }
  submit(state_->broker, *std::move(command), Broker::Admission::bounded,
         [call, response](Command* done) {
           AppendCommand* const appended = answer_of<AppendCommand>(done);
           if (appended == nullptr) return call.finish(to_status(busy()));
           reply({.batches = std::move(appended->outcomes),
                  .records = std::move(appended->record_outcomes)},
                 *response);
           call.finish(grpc::Status::OK);
         });
  return call.reactor();
}

Reactor* StreamService::StoreOffset(Context* context, const v1::StoreOffsetRequest* request,
                                    v1::StoreOffsetResponse* /*response*/) {
  return run(UnaryCall(context, state_, Operation::store_offset), convert(*request),
             [](const StoreOffsetCommand&) {});
}

Reactor* StreamService::QueryOffset(Context* context, const v1::QueryOffsetRequest* request,
                                    v1::QueryOffsetResponse* response) {
  return run(UnaryCall(context, state_, Operation::query_offset), convert(*request),
             [response](const QueryOffsetCommand& done) {
               if (done.offset.has_value()) {
                 response->set_offset(static_cast<std::int64_t>(done.offset->value));
               }
               response->set_generation(done.generation.value);
             });
}

Reactor* StreamService::ListGroups(Context* context, const v1::ListGroupsRequest* request,
                                   v1::ListGroupsResponse* response) {
  return ask_for_page(
      UnaryCall(context, state_, Operation::list_groups), convert(*request),
      [response, state = state_](std::vector<ListGroupsCommand>& answers, const Page& page) {
        const auto id = [](const GroupReport& group) { return group.description.group; };
        const auto key = [&](const GroupReport& group) { return to_key(id(group)); };
        const auto listed = merge_page(answers, &ListGroupsCommand::groups, id, page.items_max);
        const Instant now = state->broker.now();
        response->set_next_page_token(fill_page(
            page, listed, *response->mutable_groups(), key,
            [now](const GroupReport& group, v1::Group& shown) { describe(group, now, shown); }));
      });
}

Reactor* StreamService::DescribeGroup(Context* context, const v1::DescribeGroupRequest* request,
                                      v1::DescribeGroupResponse* response) {
  return run(UnaryCall(context, state_, Operation::describe_group),
             group_command(request->stream(), request->group(), GroupCommand::What::describe),
             [response, state = state_](const GroupCommand& done) {
               describe(done.partitions, state->broker.now(), *response->mutable_partitions());
             });
}

Reactor* StreamService::EvaluateGroup(Context* context, const v1::EvaluateGroupRequest* request,
                                      v1::EvaluateGroupResponse* response) {
  return run(UnaryCall(context, state_, Operation::evaluate_group),
             group_command(request->stream(), request->group(), GroupCommand::What::evaluate),
             [response, state = state_](const GroupCommand& done) {
               describe(done.partitions, state->broker.now(), *response->mutable_partitions());
             });
}

Reactor* StreamService::SetGroupOffsets(Context* context, const v1::SetGroupOffsetsRequest* request,
                                        v1::SetGroupOffsetsResponse* response) {
  return run(UnaryCall(context, state_, Operation::set_group_offsets), convert(*request),
             [response](const SetGroupOffsetsCommand& done) {
               for (const SetGroupOffsetsCommand::Move& move : done.moves) {
                 v1::GroupOffsetChange& change = *response->add_changes();
                 change.set_partition(move.partition.value);
                 if (move.before.has_value()) {
                   change.set_before(static_cast<std::int64_t>(move.before->value));
                 }
                 change.set_after(static_cast<std::int64_t>(move.offset.value));
               }
             });
}

Reactor* StreamService::DeleteGroup(Context* context, const v1::DeleteGroupRequest* request,
                                    v1::DeleteGroupResponse* /*response*/) {
  return run(UnaryCall(context, state_, Operation::delete_group),
             group_command(request->stream(), request->group(), GroupCommand::What::forget),
             [](const GroupCommand&) {});
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* StreamService::AppendStream(
    Context* context) {
  const auto call = std::make_shared<AppendCall>(state_);
  auto* const reactor = new BidiReactor(context, state_, Operation::append_stream, call);
  call->open(*reactor, true);
  return reactor;
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* StreamService::Read(Context* context,
                                                                const grpc::ByteBuffer* request) {
  v1::ReadRequest parsed;
  const Status readable = parse_request(own(request), parsed);
  Result<ReadWanted> wanted =
      readable.has_value() ? convert(parsed) : Result<ReadWanted>(readable.error());
  const auto session = std::make_shared<ReadSession>(
      state_, wanted.has_value() ? wanted->wanted : ReadSession::Wanted{});
  const auto call = std::make_shared<ReadCall>(session);
  auto* const reactor = new WriteReactor(context, state_, Operation::read, call);
  if (!wanted.has_value()) {
    session->end(wanted.error());
  } else {
    session->begin(std::move(wanted->open));
  }
  call->open(*reactor, false);
  return reactor;
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* StreamService::Subscribe(
    Context* context) {
  const auto call = std::make_shared<SubscribeCall>(state_);
  auto* const reactor = new BidiReactor(context, state_, Operation::subscribe, call);
  call->open(*reactor, true);
  return reactor;
}

}  // namespace baton
