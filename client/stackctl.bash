# bash completion for stackctl                             -*- shell-script -*-
# SPDX-License-Identifier: GPL-2.0-or-later
# Reads the verbs, their options and the values of options from the help that stackctl prints.

_stackctl_verbs()
{
	"${words[0]}" help 2>/dev/null |
		awk 'NF == 0 { in_verbs = 0 } in_verbs { print $1 } $0 == "Verbs" { in_verbs = 1 }'
}

# Prints the options of a verb. In its help they begin a line, as in "  -p, --pid P,..  ...".
_stackctl_options()
{
	"${words[0]}" help $1 2>/dev/null |
		grep -oE '^ {2,6}(-[[:alpha:]], )?--?[[:alpha:]][[:alpha:]-]*' | tr -d ,
}

# Prints the ids of the sessions that users have started, without those that have ended if the first
# argument is "running". Such an id is at least 100. It begins a line of the list.
_stackctl_sessions()
{
	"${words[0]}" sessions 2>/dev/null | awk -v running="$1" '
		/^[^ ]/ { if (id) print id; id = /^[1-9][0-9][0-9]+ / ? $1 : "" }
		running && /^ +ended / { id = "" }
		END { if (id) print id }'
}

# Prints the name of the value that an option takes, such as "P,.."; nothing for a flag. A line of
# values that ends with a bar goes on in the next one.
_stackctl_value()
{
	"${words[0]}" help $1 2>/dev/null |
		sed -nE ":a; /\|$/ { N; s/\n +//; ba }; s/^ +(-., )?($2|$2, --[[:alpha:]-]+) ([^ ]+).*/\3/p"
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
	if declare -F _init_completion >/dev/null; then
		_init_completion -s || return
	else
		# Without the package bash-completion, words are split at spaces only.
		words=("${COMP_WORDS[@]}") cword=$COMP_CWORD split=false
		cur=${words[cword]} prev=${words[cword - 1]}
	fi

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
	-p | --pid | --not-pid)
		declare -F _pids >/dev/null && _pids
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
	--state | --not-state)
		_stackctl_complete R S D T t P I preempted
		return
		;;
	--reason | --not-reason)
		_stackctl_complete mutex rwlock pi-mutex cond sem barrier join futex futexes \
			program-lock gil sysv-sem \
			flock fcntl lease file-lock pipe-read pipe-write fifo-open eventfd tty-read tty-write \
			tty-open mq msgrcv msgsnd accept connect tcp udp unix unix-send netlink packet vsock \
			socket socket-send linger replication request tun socket-lock epoll poll select io_uring aio inotify \
			fanotify sleep timerfd kernel-timer pause sigwait sigsuspend signalfd child vfork exec \
			coredump stopped debugger seccomp seccomp-server scanned key module firmware user-helper \
			autofs audit kernel-log trace pid-ns netdev netns frozen page-fault swap-in userfaultfd \
			userfaultfd-server migration host-page reclaim memory-high memory-max dirty-pages \
			file-read writeback journal quota disk-flush disk-queue disk-recovery md disk io fuse \
			fuse-server nfs smb 9p ceph netfs kernel-mutex kernel-rwsem kernel-sem kernel-rt-mutex \
			kernel-percpu-rwsem kernel-lock mmap-lock inode-lock file-position lookup fsfreeze rtnl \
			cgroup-lock rcu gpu kvm input sound usb random workqueue kthread work cpu throttled \
			unknown
		return
		;;
	--range)
		_stackctl_complete -10min..-5min 14:00..14:05
		return
		;;
	--base)
		_stackctl_complete -1h -1d -7d 14:00..14:05
		return
		;;
	--since | --until | --at)
		_stackctl_complete now today yesterday
		return
		;;
	-S | --socket | -o | --output)
		declare -F _filedir >/dev/null && _filedir
		return
		;;
	--cgroup | --not-cgroup)
		_stackctl_complete "$(cd /sys/fs/cgroup 2>/dev/null &&
			find . -maxdepth 2 -type d -printf '/%P\n' 2>/dev/null)"
		return
		;;
	--unit | --not-unit)
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
	windows | snapshot | diff)
		_stackctl_complete offcpu oncpu offwake iolat $(_stackctl_sessions)
		;;
	stop) _stackctl_complete $(_stackctl_sessions running) ;;
	start | record | watch)
		_stackctl_complete offcpu oncpu offwake iolat stackcount stacksnoop
		;;
	*) _stackctl_complete $(_stackctl_options "$verb") ;;
	esac
} && complete -F _stackctl stackctl
