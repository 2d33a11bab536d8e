# How the book's figures look. Run before a program's own script:
#
#   gnuplot -e "figure='svg'; output='x.svg'" weave/figure.gp x.gp
#
# figure is 'svg' for the pages or 'pdf' for print. The script calls one
# of the figure_ functions with its width and height in inches and
# evaluates the commands that come back.

set encoding utf8

# Pure black is for what a page may recolour (text, axes); nothing that
# must stay dark on a light cell is pure black.
font = figure eq 'svg' ? 'sans-serif,12' : 'sans,9'
figure_open(width, height) = figure eq 'svg' \
    ? sprintf("set terminal svg size %d,%d dynamic enhanced font '%s' background rgb 'white'; set output '%s'", \
              96 * width, 96 * height, font, output) \
    : sprintf("set terminal pdfcairo size %.2fin,%.2fin enhanced font '%s'; set output '%s'", \
              width, height, font, output)

figure_sequential(width, height) = figure_open(width, height) . "; " . sequential . heat
figure_diverging(width, height) = figure_open(width, height) . "; " . diverging . heat
figure_lines(width, height) = figure_open(width, height) . "; " . axes
figure_bars(width, height) = figure_open(width, height) . "; " . axes . bars

sequential = "set palette defined (0 '#f7fbff', 1 '#deebf7', 2 '#c6dbef', 3 '#9ecae1', 4 '#6baed6', 5 '#4292c6', 6 '#2171b5', 7 '#08519c', 8 '#08306b'); "
diverging = "set palette defined (0 '#b35806', 1 '#f1a340', 2 '#fee0b6', 3 '#f7f7f7', 4 '#d1e5f0', 5 '#67a9cf', 6 '#2166ac'); "
heat = "unset border; set tics scale 0; set colorbox; unset key"
axes = "set border 3; set tics nomirror out scale 0.5; set key above left horizontal noenhanced"
bars = "; set style fill solid noborder; set boxwidth 0.8 relative; unset key"

set style line 1 linecolor rgb '#0072b2' linewidth 2 pointtype 7 pointsize 0.5 dashtype 1
set style line 2 linecolor rgb '#d55e00' linewidth 2 pointtype 5 pointsize 0.5 dashtype 2
set style line 3 linecolor rgb '#009e73' linewidth 2 pointtype 9 pointsize 0.7 dashtype 4
set style line 4 linecolor rgb '#cc79a7' linewidth 2 pointtype 13 pointsize 0.7 dashtype 5
set style line 5 linecolor rgb '#e69f00' linewidth 2 pointtype 6 pointsize 0.6 dashtype 3
set style line 6 linecolor rgb '#56b4e9' linewidth 2 pointtype 4 pointsize 0.6 dashtype 1
