# bash completion for stackctl                             -*- shell-script -*-
# SPDX-License-Identifier: GPL-2.0-or-later
# tests/doc compares the words here with what stackctl VERB --help says.

_stackctl()
{
	local cur prev words cword split
	_init_completion -s || return

	local common='--socket --help --version -S -h'
	local format='--format --json'
	local range='--window --since --until --at'
	local filter='--pid --tid --user-threads --kernel-threads --user-stacks --kernel-stacks
		--min-block-time --max-block-time --state --comm --cgroup --unit
		-p -t -u -k -U -K -m -M'
	local layers='--layer --op --disk' views='--queued --milliseconds --breakdown --over-time --chain'
	local calls='--regexp --rate -r' list='--functions --regexp -r'
	local order='--sort --by'
	local session='--cpu --frequency --count --event --idle -C -F'
	local stacks='--top --reverse --idle --folded --delimited --annotations --offset
		--verbose --short -n -f -d -a -s -v' once='--strict --lines --output'

	case $prev in
	-p | --pid)
		_pids
		return
		;;
	--format)
		COMPREPLY=($(compgen -W 'text folded json' -- "$cur"))
		return
		;;
	--event)
		COMPREPLY=($(compgen -W 'cpu-clock cycles' -- "$cur"))
		return
		;;
	--sort)
		COMPREPLY=($(compgen -W 'total max count' -- "$cur"))
		return
		;;
	--by)
		COMPREPLY=($(compgen -W 'stack thread process comm cgroup module function' -- "$cur"))
		return
		;;
	--layer)
		COMPREPLY=($(compgen -W 'syscall vfs fs block throttled queue device' -- "$cur"))
		return
		;;
	--op)
		COMPREPLY=($(compgen -W 'read write sync open flush discard submit other' -- "$cur"))
		return
		;;
	--disk)
		COMPREPLY=($(compgen -W "$(ls /sys/class/block 2>/dev/null)" -- "$cur"))
		return
		;;
	--state)
		COMPREPLY=($(compgen -W 'R S D T t P I preempted' -- "$cur"))
		return
		;;
	--since | --until | --at)
		COMPREPLY=($(compgen -W 'now today yesterday' -- "$cur"))
		return
		;;
	-S | --socket | --output)
		_filedir
		return
		;;
	--cgroup)
		COMPREPLY=($(compgen -W "$(cd /sys/fs/cgroup 2>/dev/null &&
			find . -maxdepth 2 -type d -printf '/%P\n' 2>/dev/null)" -- "$cur"))
		return
		;;
	--unit)
		COMPREPLY=($(compgen -W "$(systemctl list-units --no-legend --plain 2>/dev/null |
			cut -d' ' -f1)" -- "$cur"))
		return
		;;
	-t | --tid | -C | --cpu | -F | --frequency | --count | --rate | --functions | --for | --name | --duration | -i | --interval | -m | -M | --min-block-time | --max-block-time | --comm | --window | -n | --top)
		return
		;;
	esac
	$split && return

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

	local options=$common
	case $verb in
	'')
		COMPREPLY=($(compgen -W "status probes sessions windows snapshot stuck start stop record watch snoop
			offcputime offwaketime profile stackcount stacksnoop topwaits IOStackBreakdown help $common" \
			-- "$cur"))
		return
		;;
	status) options+=" --check $format" ;;
	probes) options+=" $format $list" ;;
	sessions) options+=" $format" ;;
	windows)
		options+=" $format $range"
		if [[ $cur != -* ]]; then
			COMPREPLY=($(compgen -W 'offcpu oncpu offwake' -- "$cur"))
			return
		fi
		;;
	snapshot)
		options+=" $format $range $filter $layers $order $stacks $once $views"
		if [[ $cur != -* ]]; then
			COMPREPLY=($(compgen -W 'offcpu oncpu iolat' -- "$cur"))
			return
		fi
		;;
	stuck) options+=" $format $range $filter $stacks $once" ;;
	start) options+=" $filter $layers $session $calls --for --name" ;;
	stop) ;;
	offcputime | offwaketime | profile | stackcount | stacksnoop | topwaits | IOStackBreakdown)
		# Letters of their own, which the verb itself knows best.
		COMPREPLY=($(compgen -W "$("${words[0]}" "$verb" --help 2>/dev/null |
			grep -oE '^  --?[[:alpha:]][[:alpha:]-]*')" -- "$cur"))
		return
		;;
	snoop) options+=" $format $filter $calls --cpu -C --offset --verbose --short -s -v --duration" ;;
	record) options+=" $format $filter $layers $session $calls $order $stacks $once $views --duration" ;;
	watch) options+=" $format $filter $layers $order $stacks $views --interval -i" ;;
	help)
		COMPREPLY=($(compgen -W 'status probes sessions windows snapshot stuck start stop record watch snoop
			offcputime offwaketime profile stackcount stacksnoop topwaits IOStackBreakdown help' \
			-- "$cur"))
		return
		;;
	esac
	if [[ $verb == @(start|record|watch) && $cur != -* ]]; then
		COMPREPLY=($(compgen -W 'offcpu oncpu offwake iolat stackcount stacksnoop' -- "$cur"))
		return
	fi
	COMPREPLY=($(compgen -W "$options" -- "$cur"))
} && complete -F _stackctl stackctl
