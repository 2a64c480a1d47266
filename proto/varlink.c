/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proto/varlink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "common/arena.h"
#include "common/base.h"
#include "proto/json_text.h"
#include "proto/message_read.h"
#include "proto/record.h"

struct varlink_message *varlink_message_free(struct varlink_message *message)
{
	if (!message)
		return NULL;
	json_object_put(message->root);
	free(message);
	return NULL;
}

void varlink_message_freep(struct varlink_message **message)
{
	*message = varlink_message_free(*message);
}

/*
 * Finds a member of a message by its name. Sets *out to NULL if it is absent or null. Returns
 * -EBADMSG if the member has another type.
 */
static int member_get(struct json_object *root, const char *name, enum json_type type,
		      struct json_object **out)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(root, name, &value);
	if (value && !json_object_is_type(value, type))
		return -EBADMSG;
	*out = value;
	return 0;
}

static int member_get_name(struct json_object *root, const char *name, const char **out)
{
	struct json_object *value;
	int r = member_get(root, name, json_type_string, &value);

	if (r < 0 || !value)
		return r;
	if (json_object_get_string_len(value) == 0 ||
	    json_object_get_string_len(value) > VARLINK_MAX_METHOD)
		return -EBADMSG;
	*out = json_object_get_string(value);
	return 0;
}

static int member_get_bool(struct json_object *root, const char *name, bool *out)
{
	struct json_object *value;
	int r = member_get(root, name, json_type_boolean, &value);

	if (r == 0 && value)
		*out = json_object_get_boolean(value);
	return r;
}

static int message_parse(const char *text, size_t len, size_t max_values,
			 struct varlink_message **out)
{
	_cleanup_(varlink_message_freep) struct varlink_message *message = NULL;
	int r;

	message = calloc(1, sizeof(*message));
	if (!message)
		return -ENOMEM;
	r = message_read(text, len, VARLINK_MAX_DEPTH, max_values, &message->root);
	if (r < 0)
		return r;
	r = member_get(message->root, "parameters", json_type_object, &message->parameters);
	if (r < 0)
		return r;
	*out = TAKE(message);
	return 0;
}

int varlink_call_parse(const char *text, size_t len, struct varlink_message **out)
{
	_cleanup_(varlink_message_freep) struct varlink_message *message = NULL;
	int r;

	r = message_parse(text, len, VARLINK_MAX_REQUEST_VALUES, &message);
	if (r < 0)
		return r;
	r = member_get_name(message->root, "method", &message->method);
	if (r < 0)
		return r;
	if (!message->method)
		return -EBADMSG;
	r = member_get_bool(message->root, "more", &message->more);
	if (r < 0)
		return r;
	r = member_get_bool(message->root, "oneway", &message->oneway);
	if (r < 0)
		return r;
	*out = TAKE(message);
	return 0;
}

int varlink_reply_parse(const char *text, size_t len, struct varlink_message **out)
{
	_cleanup_(varlink_message_freep) struct varlink_message *message = NULL;
	int r;

	r = message_parse(text, len, SIZE_MAX, &message);
	if (r < 0)
		return r;
	r = member_get_name(message->root, "error", &message->error);
	if (r < 0)
		return r;
	r = member_get_bool(message->root, "continues", &message->continues);
	if (r < 0)
		return r;
	*out = TAKE(message);
	return 0;
}

static void put_parameters(const struct record *record, const void *params, struct text *out)
{
	text_put_str(out, "\"parameters\":");
	if (record)
		record_encode(record, params, out);
	else
		text_put_str(out, "{}");
}

static int put_end(struct text *out)
{
	text_put(out, "}", 2); /* the bracket, and the NUL that ends the message */
	return out->error;
}

int varlink_call_encode(const char *method, const struct record *record, const void *params,
			unsigned flags, struct text *out)
{
	text_put_str(out, "{\"method\":");
	json_put_string(out, method);
	text_put_str(out, ",");
	put_parameters(record, params, out);
	if (flags & VARLINK_MORE)
		text_put_str(out, ",\"more\":true");
	if (flags & VARLINK_ONEWAY)
		text_put_str(out, ",\"oneway\":true");
	return put_end(out);
}

int varlink_reply_encode(const struct record *record, const void *params, unsigned flags,
			 struct text *out)
{
	text_put_str(out, "{");
	put_parameters(record, params, out);
	if (flags & VARLINK_CONTINUES)
		text_put_str(out, ",\"continues\":true");
	return put_end(out);
}

int varlink_error_encode(const struct wire_error *error, struct text *out)
{
	const struct wire_error_shape *shape = wire_error_shape(error->code);

	if (!shape)
		return -EINVAL;
	text_put_str(out, "{\"error\":");
	json_put_string(out, shape->name);
	text_put_str(out, ",\"parameters\":{");
	if (shape->first) {
		json_put_string(out, shape->first);
		text_put_str(out, ":");
		if (shape->is_limit)
			text_put_int(out, error->limit);
		else
			json_put_string(out, error->what ? error->what : "");
	}
	if (shape->has_message) {
		text_put_str(out, ",\"message\":");
		json_put_string(out, error->message ? error->message : "");
	}
	text_put_str(out, "}");
	return put_end(out);
}

static int copy_string(struct json_object *parameters, const char *name, struct arena *arena,
		       const char **out)
{
	struct json_object *value = NULL;

	if (parameters)
		json_object_object_get_ex(parameters, name, &value);
	if (!json_object_is_type(value, json_type_string))
		return 0;
	*out = arena_strdup(arena, json_object_get_string(value));
	return *out ? 0 : -ENOMEM;
}

/*
 * Reads the error of a reply. The error may have no parameters, because its name says which error
 * it is.
 */
int varlink_error_decode(const struct varlink_message *message, struct arena *arena,
			 struct wire_error *out)
{
	const struct wire_error_shape *shape;
	struct wire_error error = { .limit = WIRE_ABSENT };
	struct json_object *limit = NULL;
	int r = 0;

	if (!message->error)
		return -EINVAL;
	error.code = wire_error_code(message->error);
	shape = wire_error_shape(error.code);
	if (shape && shape->is_limit) {
		json_object_object_get_ex(message->parameters, shape->first, &limit);
		if (json_object_is_type(limit, json_type_int))
			error.limit = json_object_get_int64(limit);
	} else if (shape && shape->first) {
		r = copy_string(message->parameters, shape->first, arena, &error.what);
	}
	if (r == 0 && shape && shape->has_message)
		r = copy_string(message->parameters, "message", arena, &error.message);
	if (r == 0)
		*out = error;
	return r;
}
