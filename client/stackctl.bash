# bash completion for stackctl                             -*- shell-script -*-
# SPDX-License-Identifier: GPL-2.0-or-later
# Reads the verbs, their options and the values of options from the help that stackctl prints.

_stackctl_verbs()
{
	"${words[0]}" help 2>/dev/null | awk 'NF == 0 { blanks++ } NF && blanks == 1 { print $1 }'
}

# Prints the options of a verb. In its help they begin a line, as in "  -p, --pid P,..  ...".
_stackctl_options()
{
	"${words[0]}" help $1 2>/dev/null |
		grep -oE '^ {2,6}(-[[:alpha:]], )?--?[[:alpha:]][[:alpha:]-]*' | tr -d ,
}

# Prints the name of the value that an option takes, such as "P,.."; nothing for a flag.
_stackctl_value()
{
	"${words[0]}" help $1 2>/dev/null |
		sed -nE "s/^ +(-., )?($2|$2, --[[:alpha:]-]+) ([^ ]+).*/\3/p"
}

# Offers those of the words, one a line in each argument, that begin with what was typed. Not by
# compgen -W, which would run a command in a word: others choose the names of control groups.
_stackctl_complete()
{
	local word

	COMPREPLY=()
	while IFS= read -r word; do
		[[ $word && $word == "$cur"* ]] && COMPREPLY+=("$(printf '%q' "$word")")
	done < <(printf '%s\n' "$@")
}

_stackctl()
{
	local cur prev words cword split
	_init_completion -s || return

	local verb='' i
	for ((i = 1; i < cword; i++)); do
		case ${words[i]} in
		-S | --socket) ((i++)) ;;
		-*) ;;
		*)
			verb=${words[i]}
			break
			;;
		esac
	done

	case $prev in
	-p | --pid)
		_pids
		return
		;;
	--each)
		_stackctl_complete window 10s 1min
		return
		;;
	--disk)
		_stackctl_complete "$(ls /sys/class/block 2>/dev/null)"
		return
		;;
	--state)
		_stackctl_complete R S D T t P I preempted
		return
		;;
	--since | --until | --at)
		_stackctl_complete now today yesterday
		return
		;;
	-S | --socket | --output)
		_filedir
		return
		;;
	--cgroup)
		_stackctl_complete "$(cd /sys/fs/cgroup 2>/dev/null &&
			find . -maxdepth 2 -type d -printf '/%P\n' 2>/dev/null)"
		return
		;;
	--unit)
		_stackctl_complete "$(systemctl list-units --no-legend --plain 2>/dev/null |
			cut -d' ' -f1)"
		return
		;;
	-*)
		local value=$(_stackctl_value "$verb" "$prev")
		if [[ $value == *'|'* ]]; then
			# A word in capitals stands for a value that help cannot list.
			_stackctl_complete $(tr '|' '\n' <<<"$value" | grep -v '^[A-Z]*$')
		fi
		[[ $value ]] && return
		;;
	esac
	$split && return

	if [[ $cur == -* ]]; then
		_stackctl_complete $(_stackctl_options "$verb")
		return
	fi
	case $verb in
	'' | help) _stackctl_complete $(_stackctl_verbs) ;;
	windows | snapshot) _stackctl_complete offcpu oncpu offwake iolat ;;
	start | record | watch)
		_stackctl_complete offcpu oncpu offwake iolat stackcount stacksnoop
		;;
	*) _stackctl_complete $(_stackctl_options "$verb") ;;
	esac
} && complete -F _stackctl stackctl
