/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proto/message_read.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include <json-c/json.h>

#include "common/base.h"
#include "common/utf8.h"

/* Properties of a JSON text, found without parsing it, so that a hostile text costs no memory. */
struct survey {
	size_t values;	/* number of opening brackets and commas: about the number of values */
	size_t members; /* number of colons: the number of members, if the text is valid */
	int depth;
	int max_depth;
	bool has_nul; /* a string has the escape for NUL, which would end the string early in C */
};

static size_t survey_string(struct survey *survey, const char *text, size_t len, size_t i)
{
	for (i++; i < len && text[i] != '"'; i++) {
		if (text[i] != '\\')
			continue;
		if (len - i > 5 && memcmp(text + i + 1, "u0000", 5) == 0)
			survey->has_nul = true;
		i++;
	}
	return i;
}

static void survey_take(struct survey *survey, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		switch (text[i]) {
		case '"':
			i = survey_string(survey, text, len, i);
			break;
		case '{':
		case '[':
			survey->values++;
			survey->depth++;
			if (survey->depth > survey->max_depth)
				survey->max_depth = survey->depth;
			break;
		case '}':
		case ']':
			survey->depth--;
			break;
		case ',':
			survey->values++;
			break;
		case ':':
			survey->members++;
			break;
		default:
			break;
		}
	}
}

/*
 * True if the text is valid UTF-8. The check of json-c is weaker: it accepts overlong forms and
 * surrogates.
 */
static bool is_utf8(const char *text, size_t len)
{
	size_t n;

	for (size_t i = 0; i < len; i += n) {
		n = utf8_length(text + i);
		if (n == 0)
			return false;
	}
	return true;
}

static size_t count_members(struct json_object *value)
{
	size_t n = 0;

	if (json_object_is_type(value, json_type_object)) {
		json_object_object_foreach(value, key, member)
		{
			(void)key;
			n += 1 + count_members(member);
		}
	} else if (json_object_is_type(value, json_type_array)) {
		for (size_t i = 0; i < json_object_array_length(value); i++)
			n += count_members(json_object_array_get_idx(value, i));
	}
	return n;
}

static void json_putp(struct json_object **object)
{
	json_object_put(*object);
}

static void tokener_freep(struct json_tokener **tokener)
{
	if (*tokener)
		json_tokener_free(*tokener);
}

int message_read(const char *text, size_t len, int max_depth, size_t max_values,
		 struct json_object **out)
{
	_cleanup_(tokener_freep) struct json_tokener *tokener = NULL;
	_cleanup_(json_putp) struct json_object *object = NULL;
	struct survey survey = { 0 };

	if (len >= INT_MAX)
		return -EMSGSIZE;
	survey_take(&survey, text, len);
	if (survey.max_depth > max_depth || survey.values > max_values)
		return -EMSGSIZE;
	if (survey.has_nul || !is_utf8(text, len))
		return -EBADMSG;
	tokener = json_tokener_new_ex(max_depth + 1);
	if (!tokener)
		return -ENOMEM;
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
	object = json_tokener_parse_ex(tokener, text, (int)len);
	if (!json_object_is_type(object, json_type_object))
		return -EBADMSG;
	if (json_tokener_get_parse_end(tokener) != len)
		return -EBADMSG;
	/*
	 * If two members of an object have the same name, json-c keeps only one of them. The object
	 * then has fewer members than the text.
	 */
	if (count_members(object) != survey.members)
		return -EBADMSG;
	*out = TAKE(object);
	return 0;
}
