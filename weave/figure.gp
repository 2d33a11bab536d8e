# How the figures of the book look. A program's script is run after this:
#
#   gnuplot -e "figure='svg'; output='x.svg'" weave/figure.gp x.gp
#
# with figure='svg' for the pages, 'pdf' for print. The script begins with
# one of the functions below; it gives the size in inches and evaluates the
# commands that come back.

set encoding utf8

# Text and axes are black, which a page may turn into its own text colour.
# So nothing that must stay dark (a number in a light cell) is quite black.
figure_open(width, height) = figure eq 'svg' \
    ? sprintf("set terminal svg enhanced size %.0f,%.0f font 'sans-serif,12' linewidth 1; ", 96 * width, 96 * height) \
      . sprintf("set output '%s'; ", output) \
    : sprintf("set terminal pdfcairo enhanced size %.3fin,%.3fin font 'sans,9' linewidth 1; ", width, height) \
      . sprintf("set output '%s'; ", output)

# Palettes that stay apart in print without colour and for eyes that see
# red and green alike: one hue from light to dark, and orange against blue.
sequential = "set palette defined (0 '#f4f7fb', 1 '#d9e5f2', 2 '#b4cfe6', 3 '#82b0d6', 4 '#4f8cc0', 5 '#2a69a6', 6 '#15477f', 7 '#0b2a55'); "
diverging = "set palette defined (0 '#a34700', 1 '#d97c22', 2 '#f4b775', 3 '#f5f4f2', 4 '#9cc3e2', 5 '#4a8ac2', 6 '#123f77'); "
heat = "unset border; unset key; set tics scale 0; set cbtics scale 0; set x2tics offset 0,-0.4; set colorbox"

# The curves differ by dashes and marks as well as by colour.
curves = \
    "set style line 1 linecolor rgb '#0072b2' linewidth 2 dashtype 1 pointtype 7 pointsize 0.55; " . \
    "set style line 2 linecolor rgb '#d55e00' linewidth 2 dashtype (8,4) pointtype 5 pointsize 0.55; " . \
    "set style line 3 linecolor rgb '#009e73' linewidth 2 dashtype (2,3) pointtype 9 pointsize 0.75; " . \
    "set style line 4 linecolor rgb '#8a4f7d' linewidth 2 dashtype (8,3,2,3) pointtype 13 pointsize 0.75; " . \
    "set style line 5 linecolor rgb '#b8860b' linewidth 2 dashtype (14,4) pointtype 6 pointsize 0.6; " . \
    "set style line 6 linecolor rgb '#4d4d4d' linewidth 2 dashtype (4,4) pointtype 4 pointsize 0.6; "
axes = "set border 3 linewidth 0.7; unset key; set tics nomirror out scale 0.5,0.25; set xtics nomirror; set ytics nomirror; "

figure_sequential(width, height) = figure_open(width, height) . sequential . heat
figure_diverging(width, height) = figure_open(width, height) . diverging . heat
figure_lines(width, height) = figure_open(width, height) . curves . axes
figure_bars(width, height) = figure_open(width, height) . curves . axes . "set style fill solid 0.9 noborder"
