"""Makes every call of errors.json with grpcio, and reads the errors with grpcio-status, as any
Python client would.

  errors.py ADDRESS DESCRIPTORS CASES    exit 1 and a line for each that is not as expected
"""

import json
import sys
import threading

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from grpc_status import rpc_status


def load(path):
    files = descriptor_pb2.FileDescriptorSet()
    with open(path, "rb") as stream:
        files.ParseFromString(stream.read())
    pool = descriptor_pool.Default()
    for file in files.file:
        pool.Add(file)
    return pool


def call(channel, pool, case):
    service, name = case["method"].split("/")
    method = pool.FindServiceByName("baton.v1." + service).methods_by_name[name]
    request = json_format.ParseDict(case["request"],
                                    message_factory.GetMessageClass(method.input_type)())
    path = f"/baton.v1.{service}/{name}"
    how = {"request_serializer": lambda message: message.SerializeToString(),
           "response_deserializer": message_factory.GetMessageClass(method.output_type).FromString}
    if method.client_streaming:
        # A client that closes a stream in both directions at once may see its end before the
        # refusal.
        ended = threading.Event()

        def requests():
            yield request
            ended.wait()

        try:
            list(channel.stream_stream(path, **how)(requests(), timeout=20))
        finally:
            ended.set()
    elif method.server_streaming:
        list(channel.unary_stream(path, **how)(request, timeout=20))
    else:
        channel.unary_unary(path, **how)(request, timeout=20)


def check(channel, pool, case):
    """What is wrong with the answer; None when nothing is."""
    try:
        call(channel, pool, case)
    except grpc.RpcError as error:
        if error.code().name != case["code"]:
            return f"the code is {error.code().name}: {error.details()}"
        status = rpc_status.from_call(error)
        if status is None or len(status.details) != 1:
            return f"the details are {status}"
        detail = message_factory.GetMessageClass(pool.FindMessageTypeByName("baton.v1.Error"))()
        if not status.details[0].Unpack(detail):
            return f"the detail is a {status.details[0].type_url}"
        if detail.name != case["name"] or detail.code == 0 or not detail.text:
            return f"the error is {detail}"
        return None
    return "no error"


def main():
    address, descriptors, cases = sys.argv[1:]
    pool = load(descriptors)
    wrong = 0
    with grpc.insecure_channel(address) as channel, open(cases) as stream:
        for case in json.load(stream):
            complaint = check(channel, pool, case)
            if complaint:
                print(f"{case['method']} {case['request']}: {complaint}")
                wrong += 1
    sys.exit(1 if wrong else 0)


main()
