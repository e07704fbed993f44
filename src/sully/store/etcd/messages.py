"""The messages of etcd's v3 interface that the store uses, as classes.

They are made from the table below when this module is loaded, so there is no generated code to
keep and no compiler to run. Only fields that are used here are named: a message may carry others,
and skips them. Numbers and types are etcd's, which has promised never to change them.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

Message = Any
"""One of the classes below: they are created at run time, without static types."""

_PACKAGE = "sully.etcd"

# `name number type`; a `*` after the type: repeated; a `/x` after it: one of the choice x.
_TABLE = """
KeyValue: key 1 bytes, create_revision 2 int64, mod_revision 3 int64, value 5 bytes
Event: type 1 int32, kv 2 KeyValue
ResponseHeader: member_id 2 uint64, revision 3 int64
RangeRequest: key 1 bytes, range_end 2 bytes, limit 3 int64, revision 4 int64, keys_only 8 bool
RangeResponse: header 1 ResponseHeader, kvs 2 KeyValue*, more 3 bool
PutRequest: key 1 bytes, value 2 bytes
PutResponse: header 1 ResponseHeader
DeleteRangeRequest: key 1 bytes
DeleteRangeResponse: header 1 ResponseHeader, deleted 2 int64
RequestOp: request_range 1 RangeRequest/request, request_put 2 PutRequest/request, \
request_delete_range 3 DeleteRangeRequest/request
ResponseOp: response_range 1 RangeResponse/response, response_put 2 PutResponse/response, \
response_delete_range 3 DeleteRangeResponse/response
Compare: result 1 int32, target 2 int32, key 3 bytes, mod_revision 6 int64/target_union
TxnRequest: compare 1 Compare*, success 2 RequestOp*, failure 3 RequestOp*
TxnResponse: header 1 ResponseHeader, succeeded 2 bool, responses 3 ResponseOp*
AuthenticateRequest: name 1 string, password 2 string
AuthenticateResponse: header 1 ResponseHeader, token 2 string
CompactionRequest: revision 1 int64
CompactionResponse: header 1 ResponseHeader
WatchCreateRequest: key 1 bytes, range_end 2 bytes, start_revision 3 int64, progress_notify 4 bool
WatchRequest: create_request 1 WatchCreateRequest/request_union
WatchResponse: header 1 ResponseHeader, created 3 bool, canceled 4 bool, compact_revision 5 int64, \
cancel_reason 6 string, events 11 Event*
"""

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "bytes": _Field.TYPE_BYTES,
    "string": _Field.TYPE_STRING,
    "bool": _Field.TYPE_BOOL,
    "int32": _Field.TYPE_INT32,
    "int64": _Field.TYPE_INT64,
    "uint64": _Field.TYPE_UINT64,
}


def _describe() -> Message:
    file = descriptor_pb2.FileDescriptorProto(
        name="sully/etcd.proto", package=_PACKAGE, syntax="proto3"
    )
    for line in _TABLE.strip().splitlines():
        name, _, fields = line.partition(": ")
        message = file.message_type.add(name=name)
        for text in fields.split(", "):
            _add_field(message, *text.split())
    return file


def _add_field(message: Message, name: str, number: str, type_: str) -> None:
    type_, _, choice = type_.partition("/")
    field = message.field.add(name=name, number=int(number), label=_Field.LABEL_OPTIONAL)
    if type_.endswith("*"):
        type_, field.label = type_[:-1], _Field.LABEL_REPEATED
    if type_ in _SCALARS:
        field.type = _SCALARS[type_]
    else:
        field.type, field.type_name = _Field.TYPE_MESSAGE, f".{_PACKAGE}.{type_}"
    if choice:
        if not message.oneof_decl:
            message.oneof_decl.add(name=choice)
        field.oneof_index = 0


_pool = descriptor_pool.DescriptorPool()
_pool.Add(_describe())


def _class(name: str) -> Message:
    return message_factory.GetMessageClass(_pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


RangeRequest = _class("RangeRequest")
RangeResponse = _class("RangeResponse")
PutRequest = _class("PutRequest")
DeleteRangeRequest = _class("DeleteRangeRequest")
RequestOp = _class("RequestOp")
Compare = _class("Compare")
TxnRequest = _class("TxnRequest")
TxnResponse = _class("TxnResponse")
AuthenticateRequest = _class("AuthenticateRequest")
AuthenticateResponse = _class("AuthenticateResponse")
CompactionRequest = _class("CompactionRequest")
CompactionResponse = _class("CompactionResponse")
WatchCreateRequest = _class("WatchCreateRequest")
WatchRequest = _class("WatchRequest")
WatchResponse = _class("WatchResponse")

COMPARE_MOD = 2
"""`Compare.target`: the revision of the last change; 0 where the key does not exist."""
EVENT_DELETE = 1
